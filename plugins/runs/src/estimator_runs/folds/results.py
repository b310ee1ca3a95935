"""The results of the folds: metrics with intervals, and predictions in the order of the input."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_runs.folds.fold import Folds


@dataclass(frozen=True, kw_only=True)
class MetricOverFolds:
    """A metric over all folds.

    Args:
        values: one value for each fold.
        mean: their mean.
        low: the lower end of the 95% interval.
        high: the upper end.
    """

    values: tuple[float, ...]
    mean: float
    low: float
    high: float


def metrics_over_folds(folds: Folds) -> dict[str, MetricOverFolds]:
    """Mean and interval of every metric that all folds have. A fold may lack a slice.

    The interval uses Student's t with the variance of Nadeau and Bengio (2003). Folds share their training rows, so the
    plain variance of their mean is too small.

    Raises:
        ArgumentError: a fold has not ended.
    """
    from scipy.stats import t

    ended = [_ended(folds, fold) for fold in range(len(folds.splits))]
    share = float(np.mean([len(one["rows"]) / one["trained_on"] for one in ended]))
    found: dict[str, MetricOverFolds] = {}
    for name in (name for name in ended[0]["metrics"] if all(name in one["metrics"] for one in ended)):
        values = np.array([one["metrics"][name] for one in ended])
        mean, count = float(values.mean()), len(values)
        spread = float(np.sqrt(values.var(ddof=1) * (1 / count + share)) * t.ppf(0.975, count - 1))
        found[name] = MetricOverFolds(values=tuple(values.tolist()), mean=mean, low=mean - spread, high=mean + spread)
    return found


def out_of_fold(folds: Folds) -> tuple[np.ndarray, Mapping[str, np.ndarray]]:
    """Returns the prediction of every row by the fold that held it out, in the order of the input.

    Returns:
        The numbers of the rows that a fold held out, and an array for each prediction with a row for each of them.

    Raises:
        ArgumentError: a fold has not ended.
    """
    rows = np.concatenate([_ended(folds, fold)["rows"] for fold in range(len(folds.splits))]).astype(np.int64)
    order = np.argsort(rows, kind="stable")
    parts: list[dict[str, Any]] = []
    for fold in range(len(folds.splits)):
        with np.load(folds.model_dir(fold) / "predictions.npz", allow_pickle=False) as stored:
            parts.append({name.removeprefix("column/"): stored[name] for name in stored.files if "/" in name})
    return rows[order], {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}


def _ended(folds: Folds, fold: int) -> Any:
    if not folds.done(fold):
        raise ArgumentError(f"Fold {fold} of {folds.folder} has not ended. Start it again to continue.")
    return json.loads((folds.model_dir(fold) / "fold.json").read_text())
