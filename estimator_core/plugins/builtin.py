"""What the core itself declares: the same records as any plugin's. Imported at start-up: nothing heavy."""

from __future__ import annotations

from estimator_core.plugins.records import Component

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> list[Component]:
    """The components a run without any plugin can use."""
    return [
        Component(
            kind="backend",
            name="cpu",
            target="estimator_core.backends.cpu:CpuBackend",
            summary="The host's processors.",
        ),
    ]
