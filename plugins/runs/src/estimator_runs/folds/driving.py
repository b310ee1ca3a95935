"""The driver of a cross-validation: each fold is trained, evaluated and predicted once, in its own model_dir."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, NanLossDuringTrainingError
from estimator_runs.configuration.build import build_input, plugins_of
from estimator_runs.configuration.problems import ConfigurationError, at
from estimator_runs.configuration.reading import Read, read_configuration
from estimator_runs.configuration.schema import Crossval
from estimator_runs.configuration.show import masked
from estimator_runs.directories import checked_directory
from estimator_runs.ended import ended_step
from estimator_runs.folds.blind_hooks import warn_of_blind_hooks
from estimator_runs.folds.fold import (
    Folds,
    check_finite,
    experiment_in,
    fold_experiment,
    judge,
    model_dir_of,
    training_input,
)
from estimator_runs.folds.rows import Rows, read_rows
from estimator_runs.folds.splitting import splits
from estimator_runs.folds.together import run_together
from estimator_runs.json_file import write_json
from estimator_runs.workers import Interruption, owned, run_workers


def open_folds(path: Path, folder: Path | None = None, settings: Sequence[str] = ()) -> Folds:
    """Reads a configuration and its rows, and splits them.

    Args:
        path: the path of the configuration file. Rows come from [crossval.input], otherwise from [inputs.eval], read
            once.
        folder: the output directory; None: `runs/<name of the file>-crossval`.
        settings: the settings of the command line.

    Raises:
        ConfigurationError: the file cannot be used.
        ArgumentError: the rows cannot be split, or the directory is a URL or holds another cross-validation.
    """
    folder = checked_directory(folder or f"runs/{path.stem}-crossval")
    read = read_configuration(path, settings)
    crossval = read.configuration.crossval or Crossval()
    rows = _rows(read, crossval, folder)
    found = Folds(
        read=read,
        crossval=crossval,
        folder=folder,
        rows=rows,
        splits=splits(crossval, rows),
    )
    _check_same(found)
    return found


def run_folds(folds: Folds) -> None:
    """Runs the folds that have not ended, in `crossval.workers` processes or together, according to `crossval.way`.

    An interrupted fold continues from its checkpoint.

    Raises:
        ArgumentError: the plan has no last step, a worker failed, or the folds cannot be trained together.
        NanLossDuringTrainingError: the loss of a fold is not finite. The others have ended.
    """
    if folds.crossval.way != "alone":
        if folds.crossval.workers > 1:
            raise ArgumentError(
                f'crossval.way = "{folds.crossval.way}" trains the folds in one process: remove crossval.workers, or '
                'set crossval.way = "alone".'
            )
        run_together(folds)
        return
    if folds.crossval.workers == 1:
        work(folds)
        return
    said = {"path": str(folds.read.path), "folder": str(folds.folder), "settings": folds.read.settings}
    codes = run_workers("estimator_runs.folds.worker", said, folds.crossval.workers)
    waiting = [fold for fold in range(len(folds.splits)) if not folds.done(fold)]
    if waiting:
        raise ArgumentError(
            f"Folds {waiting} have not ended (exit codes {codes}): see the messages of the workers above. Start "
            "again to continue."
        )


def work(folds: Folds) -> None:
    """Runs one fold after the other, except those that have ended or belong to another process.

    Raises:
        NanLossDuringTrainingError: the loss of a fold is not finite. The others have ended.
        PreemptedError: SIGTERM or SIGINT stopped it. A fold in progress continues from its checkpoint.
    """
    failed: dict[int, int | None] = {}
    warned = False
    with Interruption() as interruption:
        for fold in range(len(folds.splits)):
            if folds.done(fold):
                continue
            with owned(folds.model_dir(fold)) as mine:
                if mine and not folds.done(fold):
                    try:
                        _run(folds, fold, warn=not warned)
                    except NanLossDuringTrainingError as error:
                        failed[fold] = error.step
                    warned = True
                    interruption.check()
    check_finite(failed)


def _run(folds: Folds, fold: int, *, warn: bool) -> None:
    experiment = fold_experiment(folds, fold)
    if warn:
        warn_of_blind_hooks(experiment.train_hooks, experiment.train_steps)
    estimator: Any = experiment.estimator
    if ended_step(estimator) is None:  # otherwise a kill came after the training
        estimator.train(training_input(folds, fold), hooks=experiment.train_hooks, max_steps=experiment.train_steps)
    judge(folds, fold, experiment)


def _rows(read: Read, crossval: Crossval, folder: Path) -> Rows:
    """Reads all rows. The input receives the params and the config of the first fold, as in its training."""
    found = read.configuration
    said = [(crossval.input, ("crossval", "input")), (found.inputs and found.inputs.eval, ("inputs", "eval"))]
    for one, path in said:
        if one is not None:
            input_fn = build_input(one, read.resolved, path, plugins_of(found))
            estimator: Any = experiment_in(read, model_dir_of(folder, 0)).estimator
            return read_rows(input_fn, params=estimator.params, config=estimator.config)
    text = "is missing: it names the rows to split. [inputs.eval] would also do."
    raise ConfigurationError([at(read.resolved, ("crossval", "input"), text)])


def _check_same(folds: Folds) -> None:
    """Checks that the directory holds the folds of the same rows and configuration."""
    digest = hashlib.sha256()
    for train, held_out in folds.splits:
        digest.update(train.tobytes() + b"/" + held_out.tobytes())
    for name, value in [*sorted(folds.rows.features.items()), ("", folds.rows.labels)]:
        digest.update(f"{name}{value.dtype}{value.shape}".encode())
        digest.update(repr(value.tolist()).encode() if value.dtype.hasobject else np.ascontiguousarray(value).tobytes())
    values = _configuration(folds.read)
    text = json.dumps(values, sort_keys=True, default=str)
    said = {
        "digest": digest.hexdigest(),
        "configuration": json.dumps(masked(values), sort_keys=True, default=str),
        "configuration_digest": hashlib.sha256(text.encode()).hexdigest(),
    }
    path = folds.folder / "crossval.json"
    if not path.exists():
        write_json(path, said)
        return
    before = json.loads(path.read_text())
    if "configuration_digest" not in before and before["configuration"] == text:  # an earlier version wrote it in full
        before |= {"configuration_digest": said["configuration_digest"]}
        write_json(path, said | {"digest": before["digest"]})
    for key, what in (("digest", "other rows or splits"), ("configuration_digest", "another configuration")):
        if before.get(key) != said[key]:
            raise ArgumentError(f"{folds.folder} holds folds of {what}. Give another directory (--dir).")


def _configuration(read: Read) -> dict[str, Any]:
    """Returns the configuration with which the folds are trained."""
    values: dict[str, Any] = dict(read.resolved.values)
    if "crossval" in values:
        values["crossval"] = {key: value for key, value in values["crossval"].items() if key != "workers"}
    return values
