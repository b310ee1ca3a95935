"""What estimator-backends-tpu declares to estimator-core. Imported at start-up: keep it light."""

from estimator_core.plugins import Component, hookimpl

ESTIMATOR_PLUGIN_API = (1, 2)


def estimator_capabilities() -> list[str]:
    """Where nobody chooses, it is taken before the processors."""
    return ["priority"]


@hookimpl
def estimator_components() -> list[Component]:
    """The backend."""
    return [
        Component(
            kind="backend", name="tpu", target="estimator_backends_tpu:TPUBackend", summary="TPUs and their pods."
        )
    ]
