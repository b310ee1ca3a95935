"""The declarations of estimator-backends-tpu for estimator-core. They are imported at start-up, so keep it light."""

from estimator_core.plugins import Component, hookimpl

ESTIMATOR_PLUGIN_API = (1, 2)


def estimator_capabilities() -> list[str]:
    """Declares that the automatic choice prefers this backend to the CPU."""
    return ["priority"]


@hookimpl
def estimator_components() -> list[Component]:
    """Returns the backend."""
    return [
        Component(
            kind="backend", name="tpu", target="estimator_backends_tpu:TPUBackend", summary="TPUs and their pods."
        )
    ]
