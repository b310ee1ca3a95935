"""The hooks of a training call, in the order of tf.estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from estimator_core._hook_members import PLACES
from estimator_core._loop.default_hooks import DefaultHooks
from estimator_core.hooks import CheckpointPolicy, Hook


@dataclass(frozen=True, kw_only=True)
class HookOrder:
    """The hooks of one call, made once; those of the EstimatorSpec join them after discovery.

    Attributes:
        first: evaluations of a save, and those between saves.
        early: step counter and summaries.
        given: of plugins, then of the call; by `place`.
        late: NaN check, log, history.
        last: the save.
    """

    first: Sequence[Hook]
    early: Sequence[Hook]
    given: Sequence[Hook]
    late: Sequence[Hook]
    last: Sequence[Hook]

    def with_spec(self, chief_hooks: Sequence[Any] = (), spec_hooks: Sequence[Any] = ()) -> list[Any]:
        """All of them, with those that the EstimatorSpec asks for: in the chief, and in every process."""
        return [*self.first, *chief_hooks, *self.early, *self.given, *self.late, *spec_hooks, *self.last]


def hook_order(
    *,
    first: Sequence[Hook],
    plugin_hooks: Sequence[Hook],
    user_hooks: Sequence[Hook],
    default: DefaultHooks,
    last: Sequence[Hook],
) -> HookOrder:
    """The hooks of a call and those the config asks for.

    Args:
        first: of the Checkpointer, ahead of all others.
        plugin_hooks: of plugins.
        user_hooks: of the call; a CheckpointPolicy among them has its place in `first` and `last`.
        default: those that take part in every call.
        last: of the Checkpointer, behind all others.
    """
    given = in_order([*plugin_hooks, *(hook for hook in user_hooks if not isinstance(hook, CheckpointPolicy))])
    return HookOrder(first=first, early=default.early, given=given, late=default.late, last=last)


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
