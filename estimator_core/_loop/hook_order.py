"""The hooks of a training call, in the order of tf.estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from estimator_core._builtin_hooks.checkpoint_saver import CheckpointSaverHook
from estimator_core._builtin_hooks.evaluation import EvaluationHook, RunEvaluations
from estimator_core._hook_members import PLACES
from estimator_core._loop.default_hooks import DefaultHooks
from estimator_core.config import RunConfig
from estimator_core.hooks import CheckpointListener, Hook


@dataclass(frozen=True, kw_only=True)
class HookOrder:
    """The hooks of one call, made once; those of the EstimatorSpec join them after discovery.

    Attributes:
        saver: of the call, if it saves; it stands at the head of `first`, and its save behind all others.
        first: saves and evaluations.
        early: step counter and summaries.
        given: of plugins, then of the call; by `place`.
        late: NaN check, log, history.
    """

    saver: CheckpointSaverHook | None
    first: Sequence[Hook]
    early: Sequence[Hook]
    given: Sequence[Hook]
    late: Sequence[Hook]

    def with_spec(self, chief_hooks: Sequence[Any] = (), spec_hooks: Sequence[Any] = ()) -> list[Any]:
        """All of them, with those that the EstimatorSpec asks for: in the chief, and in every process."""
        last = [] if self.saver is None else [self.saver.last]
        return [*self.first, *chief_hooks, *self.early, *self.given, *self.late, *spec_hooks, *last]


def hook_order(
    config: RunConfig,
    *,
    plugin_hooks: Sequence[Hook],
    user_hooks: Sequence[Hook],
    listeners: Sequence[CheckpointListener],
    evaluations: RunEvaluations | None,
    default: DefaultHooks,
) -> HookOrder:
    """The hooks of a call and those the config asks for.

    Args:
        config: cadences of saves.
        plugin_hooks: of plugins.
        user_hooks: of the call; the first CheckpointSaverHook among them is the saver.
        listeners: told of saves.
        evaluations: of train_and_evaluate.
        default: those that take part in every call.
    """
    saver = next((hook for hook in user_hooks if isinstance(hook, CheckpointSaverHook)), None)
    if saver is None and (config.save_checkpoints_steps or config.save_checkpoints_secs):
        saver = CheckpointSaverHook(save_steps=config.save_checkpoints_steps, save_secs=config.save_checkpoints_secs)
    first: list[Hook] = []
    if saver is not None:
        saver.add_listeners(listeners)
        first = [saver]
        if evaluations is not None and evaluations.next_step(0) is not None:
            first.append(EvaluationHook(evaluations.next_step, saver.run_between))
    given = in_order([*plugin_hooks, *(hook for hook in user_hooks if not isinstance(hook, CheckpointSaverHook))])
    return HookOrder(saver=saver, first=first, early=default.early, given=given, late=default.late)


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
