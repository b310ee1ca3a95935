"""The hooks of a training call: the default hooks, created by name, and all hooks in the order of tf.estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from estimator_core._builtin_hooks.history import History, HistoryRecorderHook
from estimator_core._hook_members import PLACES
from estimator_core._plugins import Plugins
from estimator_core._plugins.in_use import component_of, require_components
from estimator_core.config import RunConfig
from estimator_core.hooks import Hook


@dataclass(frozen=True, kw_only=True)
class DefaultHooks:
    """The default hooks of one call, in call order by place.

    Attributes:
        early: the hooks before those of plugins and of the user: step counter, summaries.
        late: the hooks after them: NaN check, log, history.
    """

    early: tuple[Hook, ...]
    late: tuple[Hook, ...]


def default_hooks(config: RunConfig, plugins: Plugins, history: History) -> DefaultHooks:
    """Creates the default hooks of one training call.

    Args:
        config: the RunConfig, which names the component for each role (`components`), and has the cadence. A cadence of
            None or 0 leaves the role empty.
        plugins: the registry that provides components.
        history: the history that is filled at the cadence of the log.

    Raises:
        PluginLookupError: a named component does not exist, of any role.
        PluginError: a component cannot be made, or is not a hook.
    """

    def made(role: str, **arguments: object) -> list[Hook]:
        hook: Hook | None = component_of(role, config.components, plugins, **arguments)
        return [] if hook is None else [hook]

    require_components(config.components, plugins)
    every, save_steps = config.log_step_count_steps, config.save_summary_steps
    counter = made("step_counter", every_n_steps=every) if every else []
    summaries = made("summary_saver", save_steps=save_steps) if save_steps else []
    log = made("log", tensors={"loss": "loss", "step": "step"}, every_n_iter=every) if every else []
    recorder = [HistoryRecorderHook(history, every)] if every else []
    return DefaultHooks(early=(*counter, *summaries), late=(*made("nan_tensor"), *log, *recorder))


@dataclass(frozen=True, kw_only=True)
class HookOrder:
    """The hooks of one call, created once. The hooks of the EstimatorSpec are added after discovery.

    Attributes:
        first: the hooks for evaluations of a save, and between saves.
        default: the default hooks, before and after the given ones.
        given: the hooks of plugins, then those of the call, in the order of `in_order`.
        last: the hook that saves.
    """

    first: Sequence[Hook]
    default: DefaultHooks
    given: Sequence[Hook]
    last: Sequence[Hook]

    def with_spec(self, chief_hooks: Sequence[object] = (), spec_hooks: Sequence[object] = ()) -> list[Any]:
        """Returns all hooks, including those of the EstimatorSpec for the chief and for every process."""
        before, after = [*self.first, *chief_hooks], [*spec_hooks, *self.last]
        return [*before, *self.default.early, *self.given, *self.default.late, *after]


def in_order(hooks: Sequence[object]) -> list[Any]:
    """Sorts the hooks of plugins and of a call by their `place`. Hooks of one place keep their order.

    Example:
        >>> from estimator_core.hooks import Hook
        >>> class Last(Hook):
        ...     place = "late"
        >>> [type(hook).__name__ for hook in in_order([Last(), Hook()])]
        ['Hook', 'Last']
    """
    return sorted(hooks, key=lambda hook: PLACES.index(getattr(hook, "place", "normal")))
