"""What estimator-exporters declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Component

ESTIMATOR_PLUGIN_API = (1, 0)

_COMPONENTS = (
    ("exporter", "best", "exporters.best:BestExporter", "Exports when an evaluation beats all before it."),
    ("exporter", "final", "exporters.final:FinalExporter", "Exports once, when training has ended."),
    ("exporter", "step", "exporters.step:StepExporter", "Exports at chosen steps."),
    ("exporter", "latest", "exporters.latest:LatestExporter", "Exports after every evaluation."),
    ("format", "stablehlo", "stablehlo:StableHLOFormat", "StableHLO programs for cpu, cuda and tpu, with safetensors weights."),
)


def estimator_components() -> Sequence[Component]:
    """Exporters and formats, by name."""
    return [Component(kind=kind, name=name, target=f"estimator_exporters.{target}", summary=summary) for kind, name, target, summary in _COMPONENTS]
