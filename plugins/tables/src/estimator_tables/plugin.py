"""The components of estimator-tables. Imported at start-up: keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Component

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> Sequence[Component]:
    """Returns the host transform of ids of 64 bits."""
    return [
        Component(
            kind="transform",
            name="wide_ids",
            target="estimator_tables.wide_ids:WideIds",
            summary="Ids of 64 bits as two words of 32, for growing tables.",
        )
    ]
