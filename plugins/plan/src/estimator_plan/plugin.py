"""The declarations of estimator-plan for estimator-core. They are imported at start-up, so keep it light."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_core.errors import ArgumentError
from estimator_core.plugins import Command

if TYPE_CHECKING:
    from estimator_core.hooks import Run
    from estimator_plan.taken_program import Watch

ESTIMATOR_PLUGIN_API = (1, 0)

_log = logging.getLogger("estimator_plan")
_watches: dict[int, Watch] = {}


def estimator_commands() -> Sequence[Command]:
    """Returns the command `estimator plan`."""
    return [
        Command(
            name="plan",
            target="estimator_plan.cli.plan",
            summary="Compile the training step for devices that you do not have: memory, operations, time.",
        )
    ]


def estimator_run_start(run: Run) -> None:
    """Makes the log report whether a run loads its program, if a plan has kept one for it."""
    cache = run.config.compile_cache
    if run.mode != "train" or cache in (None, "auto") or not (Path(cache).expanduser() / "planned.json").is_file():
        return
    from estimator_plan.kept_program import kept_programs
    from estimator_plan.taken_program import Watch

    try:
        kept = kept_programs(Path(cache).expanduser())
    except ArgumentError as error:
        _log.warning("%s The run compiles the programs that jax does not find there.", error)
        return
    _watches[id(run.config)] = Watch(run, kept)


def estimator_run_end(run: Run, error: BaseException | None) -> None:
    """Ends the watch of `estimator_run_start`."""
    watch = _watches.pop(id(run.config), None)
    if watch is not None:
        watch.close()
