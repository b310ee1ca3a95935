"""The context of a train, evaluate or predict call, and the contexts of calls by users, hooks and exporters."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from estimator_core._backends import Devices
from estimator_core._loop.agreement import NOBODY_ASKS, Decisions, of_several
from estimator_core._loop.result_log import ObserverLedger, ResultLog
from estimator_core._loop.time_spent import TimeSpent
from estimator_core._plugins import Plugins
from estimator_core._summaries import NO_SUMMARIES, EventFile, NoSummaries
from estimator_core.config import RunConfig
from estimator_core.hooks import Hook
from estimator_core.modes import ModeKeys


class Owner(Protocol):
    """The Estimator, as its calls see it.

    They are in a lower layer and cannot import it. Hooks receive the Estimator itself.
    """

    @property
    def config(self) -> RunConfig:
        """The configuration."""
        ...

    @property
    def params(self) -> Any:
        """A copy of the params."""
        ...

    @property
    def model_dir(self) -> str:
        """The directory of checkpoints, events, evaluations and exports."""
        ...

    def eval_dir(self, name: str | None = None) -> str:
        """Returns the directory of an evaluation's results."""
        ...

    def latest_checkpoint(self) -> str | None:
        """Returns the path of the newest checkpoint of model_dir."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class RunContext:
    """The context of one call. It never changes. `within` makes the context of a call inside it.

    Attributes:
        mode: the mode of the call.
        name: the name of the evaluation.
        estimator: the Estimator.
        config: the resolved RunConfig, which identifies this process.
        params: the params of the Estimator.
        directory: the directory of the call: model_dir, or the directory of the evaluation.
        devices: backend, placement, processes; `devices.alone()` are this process's own.
        plugins: the plugin registry.
        summaries: the event file of the call.
        account: the account of the time of the outermost call.
        decisions: the decisions that depend on signals, clocks and other processes.
        results: the results of evaluations. The outermost call closes them.
        busy: the hooks with state that this call and the calls around it use, by id.
        replaces: whether an evaluation replaces a recorded one of the same step.
        checkpoint: the path of the evaluated state, which may not be saved yet. None: it is looked up.
        outer: the call around this one.
    """

    mode: str
    name: str | None = None
    estimator: Owner
    config: RunConfig
    params: Any
    directory: Path
    devices: Devices
    plugins: Plugins
    summaries: EventFile | NoSummaries
    account: TimeSpent
    decisions: Decisions
    results: ResultLog
    busy: dict[int, Hook] = field(default_factory=dict[int, Hook])
    replaces: bool = False
    checkpoint: str | None = None
    outer: RunContext | None = None

    def within(self, **changes: object) -> RunContext:
        """Returns the context of a call inside this one, which differs from it in these fields."""
        return replace(self, outer=self, **changes)

    def together(self, call: str, hooks: Sequence[object], **arguments: object) -> AbstractContextManager[None]:
        """Waits until all processes have arrived at the same call. Inside the block, all end when one fails.

        Args:
            call: the name of the call.
            hooks: the hooks of the call, without those that plugins add.
            arguments: the arguments that must be the same in all processes: numbers, text, or lists of them.

        Raises:
            ArgumentError: the processes make different calls.
            ProcessLostError: a process is lost.
        """
        processes, versions = self.devices.processes, self.plugins.versions
        if processes.count == 1:
            return nullcontext()
        several = of_several(self.plugins)
        block: AbstractContextManager[None] = several.together(
            processes, call, hooks=hooks, versions=versions, **arguments
        )
        return block

    @property
    def training(self) -> bool:
        """Whether this is a training call, or inside of one."""
        return self.mode == ModeKeys.TRAIN or (self.outer is not None and self.outer.training)


class CallUnderWay(threading.local):
    """The context of the call in progress, for other calls of the same thread.

    Calls of other threads are not part of it.
    """

    context: RunContext | None = None


def outermost_context(estimator: Owner, devices: Devices, params: object, plugins: Plugins) -> RunContext:
    """Returns the context of a training call, which is not inside another one."""
    model_dir = Path(estimator.model_dir)
    return RunContext(
        mode=ModeKeys.TRAIN,
        estimator=estimator,
        config=devices.config,
        params=params,
        directory=model_dir,
        devices=devices,
        plugins=plugins,
        summaries=NO_SUMMARIES,
        account=TimeSpent(),
        decisions=NOBODY_ASKS,
        results=ResultLog(ObserverLedger(model_dir)),
    )


def connected_context(estimator: Owner, devices: Devices, params: object, plugins: Plugins) -> RunContext:
    """Returns the same after the processes are connected, so that the config has the index of this process."""
    _ = devices.processes
    return outermost_context(estimator, devices, params, plugins)
