"""Runs a cross-validation: each fold is trained, evaluated and predicted once, in a model_dir of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.inputs import numpy_input_fn
from estimator_runs.configuration.build import build_input, plugins_of
from estimator_runs.configuration.problems import ConfigurationError, at
from estimator_runs.configuration.reading import Read, read_configuration
from estimator_runs.configuration.schema import Crossval
from estimator_runs.configuration.show import masked
from estimator_runs.folds.rows import Rows, read_rows
from estimator_runs.folds.splitting import splits
from estimator_runs.sweep.shelf import write_whole
from estimator_runs.workers import owned, run_workers


@dataclass(frozen=True, kw_only=True)
class Folds:
    """A cross-validation that is ready to run.

    Args:
        read: the configuration.
        crossval: how rows are split.
        folder: the output directory.
        rows: all rows.
        splits: rows to train on and rows held out, fold by fold.
    """

    read: Read
    crossval: Crossval
    folder: Path
    rows: Rows
    splits: Sequence[tuple[np.ndarray, np.ndarray]]

    def model_dir(self, fold: int) -> Path:
        """The model_dir of a fold."""
        return self.folder / "folds" / str(fold)

    def done(self, fold: int) -> bool:
        """Whether a fold has ended."""
        return (self.model_dir(fold) / "fold.json").exists()


def open_folds(path: Path, folder: Path | None = None, settings: Sequence[str] = ()) -> Folds:
    """Reads a configuration and its rows, and splits them.

    Args:
        path: the path of the configuration file. Rows come from [crossval.input], else from [inputs.eval], read once.
        folder: the output directory; None: `runs/<name of the file>-crossval`.
        settings: the settings of the command line.

    Raises:
        ConfigurationError: the file cannot be used.
        ArgumentError: the rows cannot be split, or the directory holds another cross-validation.
    """
    read = read_configuration(path, settings)
    crossval = read.configuration.crossval or Crossval()
    rows = _rows(read, crossval)
    found = Folds(
        read=read,
        crossval=crossval,
        folder=folder or Path(f"runs/{path.stem}-crossval"),
        rows=rows,
        splits=splits(crossval, rows),
    )
    _check_same(found)
    return found


def run_folds(folds: Folds) -> None:
    """Runs the folds that have not ended, in `crossval.workers` processes. An interrupted fold continues from its
    checkpoint.

    Raises:
        ArgumentError: the plan has no last step, or a worker failed.
    """
    if folds.crossval.workers == 1:
        work(folds)
        return
    said = {"path": str(folds.read.path), "folder": str(folds.folder), "settings": folds.read.settings}
    codes = run_workers("estimator_runs.folds.worker", said, folds.crossval.workers)
    waiting = [fold for fold in range(len(folds.splits)) if not folds.done(fold)]
    if waiting:
        raise ArgumentError(f"Folds {waiting} have not ended (exit codes {codes}). Start again to continue.")


def work(folds: Folds) -> None:
    """Runs one fold after the other, without those that have ended or belong to another process."""
    for fold in range(len(folds.splits)):
        with owned(folds.model_dir(fold)) as mine:
            if mine and not folds.done(fold):
                _run(folds, fold)


def _run(folds: Folds, fold: int) -> None:
    train, held_out = folds.splits[fold]
    model_dir, size = folds.model_dir(fold), folds.crossval.batch_size
    program = folds.read.program()
    experiment = program.experiment_fn(program.run_config(str(model_dir)), program.hparams(""))
    if experiment.train_steps is None:
        raise ArgumentError("Cross-validation needs to know when a fold is done: set train.max_steps.")
    rows = folds.rows.take(train)
    estimator: Any = experiment.estimator
    estimator.train(
        numpy_input_fn(
            dict(rows.features),
            rows.labels,
            batch_size=size,
            num_epochs=None,
            shuffle=folds.crossval.splitter != "time_ordered",
            seed=folds.crossval.seed,
        ),
        hooks=experiment.train_hooks,
        max_steps=experiment.train_steps,
    )
    test = folds.rows.take(held_out)
    inputs = numpy_input_fn(dict(test.features), test.labels, batch_size=size, num_epochs=1, shuffle=False)
    metrics = estimator.evaluate(inputs)
    predicted = list(estimator.predict(inputs))
    names = predicted[0] if isinstance(predicted[0], dict) else {"prediction": None}
    columns = {name: np.stack([row[name] if isinstance(row, dict) else row for row in predicted]) for name in names}
    np.savez(model_dir / "predictions.npz", allow_pickle=False, **{f"column/{k}": v for k, v in columns.items()})
    plain = {name: float(value) for name, value in metrics.items() if np.ndim(value) == 0}
    write_whole(model_dir / "fold.json", {"metrics": plain, "rows": held_out.tolist(), "trained_on": len(train)})


def _rows(read: Read, crossval: Crossval) -> Rows:
    found = read.configuration
    said = [(crossval.input, ("crossval", "input")), (found.inputs and found.inputs.eval, ("inputs", "eval"))]
    for one, path in said:
        if one is not None:
            return read_rows(build_input(one, read.resolved, path, plugins_of(found)))
    text = "is missing: it says which rows are split. [inputs.eval] would do."
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
        write_whole(path, said)
        return
    before = json.loads(path.read_text())
    if "configuration_digest" not in before and before["configuration"] == text:  # an earlier version wrote it all
        before |= {"configuration_digest": said["configuration_digest"]}
        write_whole(path, said | {"digest": before["digest"]})
    for key, what in (("digest", "other rows or splits"), ("configuration_digest", "another configuration")):
        if before.get(key) != said[key]:
            raise ArgumentError(f"{folds.folder} holds folds of {what}. Give another directory (--dir).")


def _configuration(read: Read) -> dict[str, Any]:
    """The configuration with which the folds are trained."""
    values: dict[str, Any] = dict(read.resolved.values)
    if "crossval" in values:
        values["crossval"] = {key: value for key, value in values["crossval"].items() if key != "workers"}
    return values
