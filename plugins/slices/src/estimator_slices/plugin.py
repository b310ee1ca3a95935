"""The declarations of estimator-slices for estimator-core. They are imported at start-up, so keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Component

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> Sequence[Component]:
    """Returns the hook that `EvalSpec(slices=...)` uses."""
    return [
        Component(
            kind="hook",
            name="slices",
            target="estimator_slices.hook:SliceHook",
            summary="Every metric of an evaluation for each slice of the data, with intervals.",
        )
    ]
