"""The declarations of estimator-experiment for estimator-core. They are imported at start-up, so keep this module
light.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from estimator_core.plugins import Command, Kind, Option
from estimator_experiment.hookspecs import ProgramSpecifications

ESTIMATOR_PLUGIN_API = (1, 3)
_log = logging.getLogger("estimator_core")


def estimator_capabilities() -> Sequence[str]:
    """Declares that a run is rehearsed before it begins."""
    return ["rehearses"]


def estimator_options() -> Sequence[Option]:
    """Returns the option to rehearse runs. A rehearsal calls each input_fn once more than the run does."""
    return [
        Option(
            name="rehearse",
            type=bool,
            default=True,
            help="Try inputs, modes and exports of each train_and_evaluate before step 1.",
        )
    ]


def estimator_rehearse(
    estimator: Any, train_spec: Any, eval_specs: Sequence[Any], options: Mapping[str, Any]
) -> Sequence[Exception]:
    """Returns the faults that would stop a `train_and_evaluate`: of inputs, modes and exports."""
    if not options["rehearse"]:
        return []
    from estimator_core.errors import PluginLookupError
    from estimator_core.storage import StorageError
    from estimator_experiment.faults import as_raised
    from estimator_experiment.rehearsal import find_faults

    try:
        return as_raised(find_faults(estimator, train_spec, eval_specs))
    except (StorageError, PluginLookupError) as error:  # the run itself ends with this error
        _log.info("Inputs, modes and exports are not tried before step 1: %s", error)
        return []


def estimator_kinds() -> Sequence[Kind]:
    """Returns the kind of the files that `estimator run` reads in addition to Python."""
    return [
        Kind(
            name="program_format",
            title="program formats",
            contract="estimator_experiment.program:ProgramFormat",
            target="a function of path and settings that returns a Program; its name is the extension of the files",
            suite="estimator_experiment.program_suite:ProgramFormatSuite",
            scaffold="estimator_experiment:scaffold",
        )
    ]


def estimator_hookspecs() -> type[ProgramSpecifications]:
    """Returns the additions that other plugins may make to `estimator run`."""
    return ProgramSpecifications


def estimator_commands() -> Sequence[Command]:
    """Returns the commands `estimator run`, `estimator export` and `estimator evaluate`."""
    return [
        Command(
            name="run",
            target="estimator_experiment.cli.run",
            summary="Run the experiment of a file: train, evaluate, export, show a few predictions.",
        ),
        Command(
            name="export",
            target="estimator_experiment.cli.export",
            summary="Export a checkpoint of the experiment of a file.",
        ),
        Command(
            name="evaluate",
            target="estimator_experiment.cli.evaluate",
            summary="Evaluate checkpoints of the experiment of a file, optionally by slice.",
        ),
    ]
