"""The order of hooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimator_core._hook_members import PLACES


def in_order(hooks: Sequence[Any]) -> list[Any]:
    """The hooks of plugins and of a call by their `place`; those of one place keep their order.

    Example:
        >>> from estimator_core.hooks import Hook
        >>> class Last(Hook):
        ...     place = "late"
        >>> [type(hook).__name__ for hook in in_order([Last(), Hook()])]
        ['Hook', 'Last']
    """
    return sorted(hooks, key=lambda hook: PLACES.index(getattr(hook, "place", "normal")))
