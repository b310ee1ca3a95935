"""The declarations of estimator-exporters for estimator-core. Imported at start-up: keep this module light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Command, Component

ESTIMATOR_PLUGIN_API = (1, 0)

_COMPONENTS = (
    ("exporter", "best", "exporters.best:BestExporter", "Exports when an evaluation beats all before it."),
    ("exporter", "final", "exporters.final:FinalExporter", "Exports once, when training has ended."),
    ("exporter", "step", "exporters.step:StepExporter", "Exports at chosen steps."),
    ("exporter", "latest", "exporters.latest:LatestExporter", "Exports after every evaluation."),
    ("format", "onnx", "onnx:OnnxFormat", "ONNX graphs, for onnxruntime and others (extra onnx)."),
    ("format", "saved_model", "saved_model:SavedModelFormat", "A TensorFlow SavedModel (extra saved_model)."),
    (
        "format",
        "stablehlo",
        "stablehlo:StableHLOFormat",
        "StableHLO programs for cpu, cuda and tpu, with safetensors weights.",
    ),
)


def estimator_components() -> Sequence[Component]:
    """Declares exporters, formats and readers of exports, by name."""
    return [
        *(
            Component(kind=kind, name=name, target=f"estimator_exporters.{target}", summary=summary)
            for kind, name, target, summary in _COMPONENTS
        ),
        Component(
            kind="initial_values",
            name="export",
            target="estimator_exporters.stablehlo.initial_values:ExportedVariables",
            summary="Initial values from the variables of a stablehlo export.",
            reads=("variables.safetensors",),
        ),
    ]


def estimator_commands() -> Sequence[Command]:
    """Declares `estimator serve`, `estimator predict` and `estimator exports`."""
    return [
        Command(name="serve", target="estimator_exporters.cli.serve", summary="Serve exports over HTTP (KServe V2)."),
        Command(name="predict", target="estimator_exporters.cli.predict", summary="Score files with an export."),
        Command(name="exports", target="estimator_exporters.cli.exports", summary="List exports and inspect one."),
    ]
