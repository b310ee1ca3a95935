"""The components of estimator-warm-start. Imported at start-up: keep it light."""

from __future__ import annotations

from estimator_core.plugins import Component, hookimpl

ESTIMATOR_PLUGIN_API = (1, 0)


@hookimpl
def estimator_components() -> list[Component]:
    """Returns the components for the Estimator's `warm_start_from="path"` and for checkpoints of TensorFlow."""
    return [
        Component(
            kind="initial_values",
            name="warm_start",
            target="estimator_warm_start:WarmStartSettings",
            summary="Values of a checkpoint or model_dir.",
        ),
        Component(
            kind="initial_values",
            name="tensorflow",
            target="estimator_warm_start:TensorFlowCheckpoint",
            summary="Values of a checkpoint of TensorFlow.",
            reads=("*.index",),
        ),
    ]
