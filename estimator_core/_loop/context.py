"""What one train, evaluate or predict call is given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core._backends import Devices
from estimator_core._loop.agreement import NobodyAsks, OwnDecisions, SharedDecisions
from estimator_core._loop.result_log import ResultLog
from estimator_core._loop.time_spent import TimeSpent
from estimator_core._plugins import Plugins
from estimator_core._summaries import EventFile, NoSummaries
from estimator_core.config import RunConfig
from estimator_core.modes import ModeKeys

if TYPE_CHECKING:
    from estimator_core._loop.owner import Owner


@dataclass(frozen=True, kw_only=True, eq=False)
class RunContext:
    """What one call is given; nothing in it changes. `within` makes that of a call inside it.

    Attributes:
        mode: of the call.
        name: of the evaluation.
        estimator: the Estimator.
        config: resolved: it says which process this is.
        params: of the Estimator.
        directory: what the call writes to: model_dir, or that of the evaluation.
        first_step, last_step: the global step a training call starts from, and the one it stops at by itself.
        resumed: whether it goes on with an interrupted call.
        devices: backend, placement, processes; `devices.alone()` are this process's own.
        plugins: the plugin registry.
        summaries: the event file of the call.
        account: of the outermost call's seconds.
        decisions: signals, clocks, other processes.
        results: of evaluations; closed by the outermost call.
        replaces: whether an evaluation takes the place of one recorded for its step.
        checkpoint: where the state evaluated lies, or will lie once it is saved; None: looked up.
        outer: the call around this one.
    """

    mode: str
    name: str | None = None
    estimator: Owner
    config: RunConfig
    params: Any
    directory: Path
    first_step: int = 0
    last_step: int | None = None
    resumed: bool = False
    devices: Devices
    plugins: Plugins
    summaries: EventFile | NoSummaries
    account: TimeSpent
    decisions: OwnDecisions | SharedDecisions | NobodyAsks
    results: ResultLog
    replaces: bool = False
    checkpoint: str | None = None
    outer: RunContext | None = None

    def within(self, **changes: Any) -> RunContext:
        """The context of a call inside this one, which differs from it in these fields."""
        return replace(self, outer=self, **changes)

    @property
    def training(self) -> bool:
        """Whether this is a training call, or inside of one."""
        return self.mode == ModeKeys.TRAIN or (self.outer is not None and self.outer.training)
