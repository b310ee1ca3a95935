"""The driver of a sweep: one worker in this process, or several worker processes."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError, EstimatorError, PreemptedError, did_you_mean
from estimator_runs.configuration.layers import KeyPath, Resolved, paths_of
from estimator_runs.configuration.overrides import layer_of
from estimator_runs.configuration.problems import ConfigurationError, at
from estimator_runs.configuration.reading import read_configuration
from estimator_runs.configuration.schema import Sweep
from estimator_runs.directories import checked_directory
from estimator_runs.sweep.directory import Outcome, Shelf
from estimator_runs.sweep.engine import Plan, check_engine, check_space, distributions, pruning, sample
from estimator_runs.sweep.trial import configured, run_trial
from estimator_runs.workers import Interruption, run_workers

_log = logging.getLogger("estimator_core")
_WAIT = 0.2
_NOT_ENDED = (
    "Trial %d has not ended. The next start tries it again. If it can never end, `estimator sweep` with --give-up %d "
    "marks it as failed, and the sweep continues without it."
)
#: The tables that a trial does not read. The directory records the relevant part of [sweep] separately.
_NOT_OF_TRIALS = ("sweep", "population", "crossval", "exporters", "serving")


@dataclass(frozen=True, kw_only=True)
class Search:
    """A sweep that is ready to run.

    Args:
        path: the path of the configuration file.
        settings: the settings of the command line.
        sweep: the search.
        space: the distributions by name.
        shelf: the directory of the sweep.
    """

    path: Path
    settings: tuple[str, ...]
    sweep: Sweep
    space: dict[str, Any]
    shelf: Shelf


def open_search(path: Path, folder: Path | None = None, settings: Sequence[str] = (), *, look: bool = False) -> Search:
    """Reads a configuration with a [sweep], and opens its directory.

    Args:
        path: the path of the configuration file.
        folder: the directory of the sweep; None: `runs/<name of the file>-sweep`.
        settings: the settings of the command line.
        look: whether the sweep is only read. It must have begun, and nothing is written.

    Raises:
        ConfigurationError: the file, its space, sampler or pruner cannot be used.
        ArgumentError: the directory is a URL, or holds another sweep or a population, or there is no sweep to look at.
    """
    folder = checked_directory(folder or f"runs/{path.stem}-sweep")
    read = read_configuration(path, settings)
    sweep = read.configuration.sweep
    if sweep is None:
        raise ConfigurationError(
            [at(read.resolved, ("sweep",), "is missing: it defines the space, objectives and trials.")]
        )
    space = distributions(sweep.space, read.resolved)
    _check_keys(sweep, read.resolved)
    if not look:  # nothing is sampled if the sweep is only read
        check_engine(sweep, read.resolved)
        check_space(sweep, space, read.resolved)
    shelf = Shelf(folder, sweep, space)
    shelf.open(_of_trials(read.resolved), look=look)
    return Search(path=path, settings=tuple(settings), sweep=sweep, space=space, shelf=shelf)


def _of_trials(resolved: Resolved) -> dict[str, Any]:
    """Returns the part of a configuration with which all trials are trained and judged."""
    return {key: value for key, value in resolved.values.items() if key not in _NOT_OF_TRIALS}


def _check_keys(sweep: Sweep, resolved: Resolved) -> None:
    """Checks that each key of the space names a value of the file. A search over an unused key would be useless."""
    known = [path for path in paths_of(resolved.values)[1:] if path[0] != "sweep"]
    names = [".".join(map(str, path)) for path in known]
    problems = []
    for key in sweep.space:
        layer = layer_of(key, 0, resolved.whole)
        path: KeyPath = paths_of(layer.values)[-1] if layer else ()
        if path not in known and path[:1] != ("run_config",):
            text = f"the file has no such value to replace.{did_you_mean(key, names)}"
            problems.append(at(resolved, ("sweep", "space", key), text))
    if problems:
        raise ConfigurationError(problems)


def run_search(search: Search) -> None:
    """Works until all trials have ended. A new start after any end continues.

    Raises:
        ArgumentError: a worker failed.
    """
    if search.sweep.workers == 1:
        work(search)
    else:
        _run_workers(search)


def work(search: Search) -> None:
    """Runs one trial after the other, unfinished ones first, until all have ended.

    Raises:
        PreemptedError: SIGTERM or SIGINT stopped it. A trial in progress continues from its checkpoint.
    """
    with Interruption() as interruption:
        while search.shelf.ended() < search.sweep.trials:
            if not any(_tried(search, number, interruption) for number in _open_numbers(search)):
                time.sleep(_WAIT)  # other processes work on trials whose results this one needs
            interruption.check()


def _open_numbers(search: Search) -> range:
    """Returns the trials that can run: those whose known trials have all ended."""
    ended = search.shelf.ended()
    return range(ended, min(ended + search.sweep.workers, search.sweep.trials))


def _tried(search: Search, number: int, interruption: Interruption) -> bool:
    """Works on a trial, unless it has ended or another process works on it. Returns whether it did."""
    shelf = search.shelf
    with shelf.owned(number) as mine:
        if not mine or shelf.outcome(number) is not None:
            return False
        plan = planned(search, number)
        known, params = shelf.known(number), plan.params
        _log.info("Trial %d of %d: %s", number, search.sweep.trials, params)
        read = configured(search.path, search.settings, f"trial {number}", params, search.sweep.seed)

        def pruned(values: Any) -> bool:
            nonlocal plan
            interruption.check()
            ends, attributes = pruning(search.sweep, search.space, known, plan, values)
            plan = replace(plan, attributes=attributes)
            return ends

        try:
            outcome = run_trial(read, shelf.trial_dir(number), search.sweep, pruned)
        except PreemptedError:
            raise
        except EstimatorError as error:
            from estimator_experiment.faults import fault

            _log.error(_NOT_ENDED, number, number)
            fault(f"trial {number} of {shelf.folder}, {params}", error)  # a command shows one line, without notes
            raise
        except Exception as error:
            _log.error(_NOT_ENDED, number, number)
            error.add_note(f"in trial {number} of {shelf.folder}: {params}")
            raise
        shelf.end(number, replace(outcome, attributes=plan.attributes))
        shelf.study()  # so other tools of Optuna see it
        _log.info("Trial %d of %d: %s %s", number, search.sweep.trials, outcome.state, list(outcome.values))
    return True


def give_up(search: Search, number: int) -> None:
    """Marks a trial that always ends in an error as failed, so that the sweep continues without it.

    Args:
        search: the sweep.
        number: the number of the trial.

    Raises:
        ArgumentError: the trial does not exist or has ended, or a process works on it.
    """
    shelf = search.shelf
    plan = shelf.plan(number) if number >= 0 else None
    if plan is None:
        raise ArgumentError(f"{shelf.folder} has no trial {number} that has begun.")
    with shelf.owned(number) as mine:
        if not mine:
            raise ArgumentError(f"A process works on trial {number} of {shelf.folder}. Stop it first.")
        if (outcome := shelf.outcome(number)) is not None:
            raise ArgumentError(f"Trial {number} of {shelf.folder} has ended: {outcome.state}. Its outcome is final.")
        shelf.end(number, Outcome(state="FAIL", reason="given up by --give-up", attributes=plan.attributes))


def planned(search: Search, number: int) -> Plan:
    """Returns the plan of a trial whose known trials have ended. Missing plans up to it are made.

    Each plan depends only on what precedes it, so every process makes the same plan.
    """
    shelf = search.shelf
    first = shelf.first_open(number)
    plan = shelf.plan(first - 1) or Plan(params={})
    for one in range(first, number + 1):
        found = shelf.plan(one)
        if found is None:
            found = sample(search.sweep, search.space, shelf.known(one), plan.study)
            shelf.note(one, found)
        plan = found
    return plan


def _run_workers(search: Search) -> None:
    """Runs the worker processes."""
    said = {"path": str(search.path), "folder": str(search.shelf.folder), "settings": search.settings}
    codes = run_workers("estimator_runs.sweep.worker", said, search.sweep.workers)
    failed = [code for code in codes if code]
    if failed and search.shelf.ended() < search.sweep.trials:
        raise ArgumentError(
            f"{len(failed)} of {len(codes)} workers failed (exit codes {failed}): see their messages above. Start "
            "again to continue."
        )
