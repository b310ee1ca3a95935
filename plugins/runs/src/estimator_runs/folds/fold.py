"""One fold: its experiment, its training input, and its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, NanLossDuringTrainingError
from estimator_core.inputs import numpy_input_fn
from estimator_runs.configuration.reading import Read
from estimator_runs.configuration.schema import Crossval
from estimator_runs.folds.rows import Rows
from estimator_runs.json_file import write_json


@dataclass(frozen=True, kw_only=True)
class Folds:
    """A cross-validation that is ready to run.

    Args:
        read: the configuration.
        crossval: the settings of the cross-validation, such as the split of the rows.
        folder: the output directory.
        rows: all rows.
        splits: for each fold, the numbers of the rows to train on and of the rows held out.
    """

    read: Read
    crossval: Crossval
    folder: Path
    rows: Rows
    splits: Sequence[tuple[np.ndarray, np.ndarray]]

    def model_dir(self, fold: int) -> Path:
        """Returns the model_dir of a fold."""
        return model_dir_of(self.folder, fold)

    def done(self, fold: int) -> bool:
        """Returns whether a fold has ended."""
        return (self.model_dir(fold) / "fold.json").exists()


def model_dir_of(folder: Path, fold: int) -> Path:
    """Returns the model_dir of a fold below an output directory."""
    return folder / "folds" / str(fold)


def experiment_in(read: Read, model_dir: Path) -> Any:
    """Returns the experiment of a configuration, in a model_dir. It runs the named files again."""
    program = replace(read, resolved=replace(read.resolved, modules={})).program()
    return program.experiment_fn(program.run_config(str(model_dir)), program.hparams(""))


def check_finite(failed: Mapping[int, int | None]) -> None:
    """Names the folds whose loss was not finite, after the others have ended.

    Args:
        failed: the step for each failed fold, or None if it is not known.

    Raises:
        NanLossDuringTrainingError: there is such a fold.
    """
    if failed:
        told = ", ".join(f"of fold {fold}{'' if step is None else f' at step {step}'}" for fold, step in failed.items())
        raise NanLossDuringTrainingError(f"The loss is not finite: {told}. Lower the learning rate.")


def fold_experiment(folds: Folds, fold: int) -> Any:
    """Returns the experiment of a fold, in its model_dir.

    Raises:
        ArgumentError: the training has no last step.
    """
    experiment = experiment_in(folds.read, folds.model_dir(fold))
    if experiment.train_steps is None:
        raise ArgumentError("Cross-validation needs to know when a fold ends: set train.max_steps.")
    return experiment


def training_input(folds: Folds, fold: int) -> Callable[..., Any]:
    """Returns an input with the training rows of a fold, in batches without an end."""
    rows = folds.rows.take(folds.splits[fold][0])
    return numpy_input_fn(
        dict(rows.features),
        rows.labels,
        batch_size=folds.crossval.batch_size,
        num_epochs=None,
        shuffle=folds.crossval.splitter != "time_ordered",
        seed=folds.crossval.seed,
    )


def judge(folds: Folds, fold: int, experiment: Any) -> None:
    """Evaluates and predicts the rows that a fold has not seen, and records that it has ended."""
    estimator = experiment.estimator
    train, held_out = folds.splits[fold]
    model_dir, test = folds.model_dir(fold), folds.rows.take(held_out)
    size = folds.crossval.batch_size
    inputs = numpy_input_fn(dict(test.features), test.labels, batch_size=size, num_epochs=1, shuffle=False)
    metrics = estimator.evaluate(inputs, hooks=experiment.eval_hooks)
    predicted = list(estimator.predict(inputs))
    names = predicted[0] if isinstance(predicted[0], dict) else {"prediction": None}
    columns = {name: np.stack([row[name] if isinstance(row, dict) else row for row in predicted]) for name in names}
    plainly = {_column(k): np.array(v.tolist()) if v.dtype.hasobject else v for k, v in columns.items()}
    np.savez(model_dir / "predictions.npz", allow_pickle=False, **plainly)
    plain = {name: float(value) for name, value in metrics.items() if np.ndim(value) == 0}
    write_json(model_dir / "fold.json", {"metrics": plain, "rows": held_out.tolist(), "trained_on": len(train)})


def _column(key: object) -> str:
    """Returns the name of the column of a prediction. With several heads, its key is a tuple of head and name."""
    return f"column/{'/'.join(map(str, key)) if isinstance(key, tuple) else key}"
