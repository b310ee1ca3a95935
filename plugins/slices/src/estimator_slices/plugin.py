"""What estimator-slices declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Component

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> Sequence[Component]:
    """The hook that `EvalSpec(slices=...)` uses."""
    return [
        Component(
            kind="hook",
            name="slices",
            target="estimator_slices.hook:SliceHook",
            summary="Every metric of an evaluation for each slice of the data, with intervals.",
        )
    ]
