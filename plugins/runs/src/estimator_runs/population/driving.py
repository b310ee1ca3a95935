"""The [population] of a configuration file: every seed with all values, trained together, each in its own model_dir."""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from estimator_core.checkpoint import checkpoint_step
from estimator_core.errors import ArgumentError
from estimator_core.summaries import read_eval_metrics
from estimator_runs.configuration.problems import ConfigurationError, at
from estimator_runs.configuration.reading import Read, read_configuration
from estimator_runs.configuration.schema import PopulationPart
from estimator_runs.configuration.show import masked
from estimator_runs.directories import check_owner, checked_directory
from estimator_runs.json_file import write_json
from estimator_runs.population.member import Member
from estimator_runs.population.training import Population
from estimator_runs.sweep.trial import configured, input_ended
from estimator_runs.workers import Interruption

_log = logging.getLogger("estimator_core")
_NOT_FINITE, _INPUT_ENDED, _ALL_STEPS = "the loss is not finite", "the input has ended", "all steps are complete"
_SEED = "run_config.tf_random_seed"


@dataclass(frozen=True, kw_only=True)
class Trials:
    """A population that is ready to run.

    Args:
        read: the configuration.
        said: the [population] of the configuration.
        folder: the directory of the population.
        values: the values of each trial by key, the seed included.
    """

    read: Read
    said: PopulationPart
    folder: Path
    values: Sequence[Mapping[str, Any]]

    def model_dir(self, number: int) -> Path:
        """Returns the model_dir of a trial."""
        return self.folder / "trials" / f"{number:05d}"

    def metrics(self, number: int) -> Mapping[str, Any]:
        """Returns the newest evaluation of a trial; empty: it has not been evaluated."""
        results = read_eval_metrics(self.model_dir(number) / "eval")
        return results[max(results)] if results else {}

    def ended(self, number: int) -> Mapping[str, Any] | None:
        """Returns the reason and the step of the end of a trial; None: it has not ended."""
        place = self.model_dir(number) / "trial.json"
        return json.loads(place.read_text()) if place.exists() else None

    def end(self, number: int, reason: str, step: int) -> None:
        """Records the end of a trial, which is not trained further."""
        write_json(self.model_dir(number) / "trial.json", {"reason": reason, "step": step})


def open_population(path: Path, folder: Path | None = None, settings: Sequence[str] = ()) -> Trials:
    """Reads a configuration with a [population], and opens its directory.

    Args:
        path: the path of the configuration file.
        folder: the directory of the population; None: `runs/<name of the file>-population`.
        settings: the settings of the command line.

    Raises:
        ConfigurationError: the file cannot be used.
        ArgumentError: the directory is a URL, or holds another population or a sweep.
    """
    folder = checked_directory(folder or f"runs/{path.stem}-population")
    read = read_configuration(path, settings)
    said = read.configuration.population
    if said is None:
        raise ConfigurationError([at(read.resolved, ("population",), "is missing: it defines seeds, values, or both.")])
    seeds = list(range(said.seeds)) if isinstance(said.seeds, int) else said.seeds
    tables = [dict(zip(said.values, chosen, strict=True)) for chosen in itertools.product(*said.values.values())]
    values = [{_SEED: seed, **table} for table in tables for seed in seeds]
    found = Trials(read=read, said=said, folder=folder, values=values)
    _check_same(found)
    return found


def run_population(trials: Trials) -> dict[int, str]:
    """Trains and evaluates all trials. A new start after any end continues.

    Returns:
        The reason of each failed trial, by number: a loss that is not finite.

    Raises:
        ArgumentError: the trials cannot be trained together, or their plan has no last step.
        PreemptedError: SIGTERM or SIGINT stopped it. All trials are saved at their current steps.
    """
    experiments = {number: _experiment(trials, number) for number in range(len(trials.values))}
    last = max((one.train_steps or 0 for one in experiments.values()), default=0)
    if any(one.train_steps != last for one in experiments.values()) or last == 0:
        raise ArgumentError("The trials of a population end at one step: set train.max_steps.")
    for number, one in experiments.items():
        if trials.ended(number) is None:
            _note_known_end(trials, number, one, last)
    waiting = {number: one for number, one in experiments.items() if trials.ended(number) is None}
    if not waiting:
        return _failures(trials)
    with Interruption() as interruption:
        _run(trials, waiting, last, interruption)
    return _failures(trials)


def _run(trials: Trials, waiting: Mapping[int, Any], last: int, interruption: Interruption) -> None:
    """Trains the trials that have not ended, from evaluation to evaluation, and records the end of each."""
    members = [
        Member(
            name=f"trial {number}", estimator=one.estimator, input_fn=one.train_input_fn, hooks=tuple(one.train_hooks)
        )
        for number, one in waiting.items()
    ]
    place = trials.folder / "way.json"
    known = json.loads(place.read_text()) if place.exists() else None
    way = known if trials.said.way == "auto" else trials.said.way
    population = Population(members, way=way, keep_way=partial(write_json, place))
    every = trials.said.every_steps or last
    for step in [*range(every, last, every), last]:
        interruption.check()
        population.train(step)
        for number, one in waiting.items():
            interruption.check()
            name = f"trial {number}"
            if trials.ended(number) is not None:
                continue
            if name in population.failed:
                trials.end(number, _NOT_FINITE, population.failed[name])
                continue
            stands = population.step(name)
            if stands > step:
                continue  # evaluated there before the command was started again
            _evaluate(one, stands)
            if stands < step or step == last:
                trials.end(number, _INPUT_ENDED if stands < step else _ALL_STEPS, stands)


def _failures(trials: Trials) -> dict[int, str]:
    ends = {number: trials.ended(number) for number in range(len(trials.values))}
    return {
        number: f"{end['reason']} at step {end['step']}"
        for number, end in ends.items()
        if end is not None and end["reason"] == _NOT_FINITE
    }


def _note_known_end(trials: Trials, number: int, one: Any, last: int) -> None:
    """Records the end of a trial that its files show: it was killed before the record, or is of an earlier version."""
    if last in read_eval_metrics(one.estimator.eval_dir()):
        trials.end(number, _ALL_STEPS, last)
    elif input_ended(one.estimator):
        step = checkpoint_step(one.estimator.latest_checkpoint())
        _evaluate(one, step)
        trials.end(number, _INPUT_ENDED, step)


def _evaluate(experiment: Any, step: int) -> None:
    """Evaluates a trial at its current step, unless that is done."""
    estimator = experiment.estimator
    if step not in read_eval_metrics(estimator.eval_dir()):
        estimator.evaluate(experiment.eval_input_fn, steps=experiment.eval_steps, hooks=experiment.eval_hooks)


def _experiment(trials: Trials, number: int) -> Any:
    read, values = trials.read, trials.values[number]
    found = configured(read.path, trials.read.settings, f"trial {number}", values, int(values[_SEED]))
    program = found.program()
    return program.experiment_fn(program.run_config(str(trials.model_dir(number))), program.hparams(""))


def _check_same(trials: Trials) -> None:
    """Checks that the directory holds trials of the same configuration. Further values may not be added."""
    whole = [trials.read.resolved.values, trials.values]
    text = json.dumps(whole, sort_keys=True, default=str)
    said = {
        "digest": hashlib.sha256(text.encode()).hexdigest(),
        "configuration": json.dumps(masked(whole), default=str),
    }
    place = trials.folder / "population.json"
    check_owner(trials.folder, place.name)
    before = json.loads(place.read_text()) if place.exists() else text
    if before == text:  # an earlier version wrote it in full
        write_json(place, said)
    elif isinstance(before, str) or before["digest"] != said["digest"]:
        raise ArgumentError(
            f"{trials.folder} holds a population of another configuration. Give another directory (--dir)."
        )
