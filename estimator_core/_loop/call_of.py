"""The contexts of calls that a user, a hook or an exporter makes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core._backends import Devices
from estimator_core._loop.agreement import NOBODY_ASKS
from estimator_core._loop.context import RunContext
from estimator_core._loop.ledgers import ObserverLedger
from estimator_core._loop.result_log import ResultLog
from estimator_core._loop.time_spent import TimeSpent
from estimator_core._plugins import Plugins
from estimator_core._summaries import NO_SUMMARIES

if TYPE_CHECKING:
    from estimator_core._loop.owner import Owner


@dataclass(frozen=True, kw_only=True)
class CallOf:
    """What tells one call of an Estimator from another.

    Attributes:
        mode: of the call.
        name: of the evaluation.
        directory: what the call writes to.
        checkpoint: what it works on; None: the newest state.
    """

    mode: str
    name: str | None
    directory: Path
    checkpoint: str | None


def inner_context(outer: RunContext, call: CallOf) -> RunContext:
    """The context of a call that a hook or an exporter makes: it belongs to no save, so that nobody breaks it off."""
    return outer.within(
        mode=call.mode,
        name=call.name,
        directory=call.directory,
        checkpoint=call.checkpoint,
        summaries=NO_SUMMARIES,
        decisions=NOBODY_ASKS,
        replaces=False,
    )


def outermost_context(call: CallOf, estimator: Owner, devices: Devices, params: Any, plugins: Plugins) -> RunContext:
    """The context of a call that is inside no other."""
    _ = devices.processes  # then the config says which of them this is
    return RunContext(
        mode=call.mode,
        name=call.name,
        estimator=estimator,
        config=devices.config,
        params=params,
        directory=call.directory,
        devices=devices,
        plugins=plugins,
        summaries=NO_SUMMARIES,
        account=TimeSpent(),
        decisions=NOBODY_ASKS,
        results=ResultLog(ObserverLedger(Path(estimator.model_dir))),
        checkpoint=call.checkpoint,
    )
