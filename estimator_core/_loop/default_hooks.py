"""The hooks that take part in every training call, made by the names the configuration gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from estimator_core._builtin_hooks.history_recorder import HistoryRecorderHook
from estimator_core._loop.history import History
from estimator_core._plugins import Plugins
from estimator_core._plugins.roles import component_of
from estimator_core.config import RunConfig
from estimator_core.hooks import Hook


@dataclass(frozen=True, kw_only=True)
class DefaultHooks:
    """The default hooks of one call, in call order by place.

    Attributes:
        early: before the hooks of plugins and of the user: step counter, summaries.
        late: after them: NaN check, log, history.
    """

    early: tuple[Hook, ...]
    late: tuple[Hook, ...]


def default_hooks(config: RunConfig, plugins: Plugins, history: History) -> DefaultHooks:
    """Makes the default hooks of one training call.

    Args:
        config: says which component takes each role (`components`), and at which cadence; a cadence of None or 0 leaves
            the role empty.
        plugins: where components are looked up.
        history: filled at the cadence of the log.

    Raises:
        PluginLookupError: a component that is named does not exist.
        PluginError: one cannot be made, or is no hook.
    """

    def made(role: str, **arguments: Any) -> list[Hook]:
        hook: Hook | None = component_of(role, config.components, plugins, **arguments)
        return [] if hook is None else [hook]

    every, save_steps = config.log_step_count_steps, config.save_summary_steps
    counter = made("step_counter", every_n_steps=every) if every else []
    summaries = made("summary_saver", save_steps=save_steps) if save_steps else []
    log = made("log", tensors={"loss": "loss", "step": "step"}, every_n_iter=every) if every else []
    recorder = [HistoryRecorderHook(history, every)] if every else []
    return DefaultHooks(early=(*counter, *summaries), late=(*made("nan_tensor"), *log, *recorder))
