"""Permutation importance: how much worse a metric becomes when the values of a feature are shuffled."""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.errors import ArgumentError, CheckpointNotFoundError
from estimator_core.estimator import Estimator
from estimator_core.metrics import less_is_better
from estimator_explain.rows import Rows, read_rows

#: Results that do not say how good a model is; of named heads the name follows.
_NOT_QUALITY = ("global_step", "label/mean", "prediction/mean", "accuracy_baseline", "probability_mean")


@dataclass(frozen=True, kw_only=True)
class Importance:
    """How much worse one metric becomes without one feature.

    Args:
        features: the features that were shuffled together.
        metric: the name of the metric.
        baseline: its value on the rows as they are.
        losses: by repetition, how much worse it was: positive if the model needs the feature, whichever way the metric
            is good.
    """

    features: tuple[str, ...]
    metric: str
    baseline: float
    losses: tuple[float, ...]

    @property
    def name(self) -> str:
        """The features in words."""
        return ",".join(self.features)

    @property
    def mean(self) -> float:
        """The mean over the repetitions."""
        return statistics.fmean(self.losses)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the mean over shuffles, by Student's t; None for one repetition, or a loss that is
        not finite.

        Example:
            >>> one = Importance(features=("x",), metric="accuracy", baseline=0.9, losses=(0.2, 0.3, 0.4))
            >>> one.mean, tuple(round(end, 3) for end in one.interval)
            (0.3, (0.052, 0.548))
        """
        freedom = len(self.losses) - 1
        if not freedom or not all(map(math.isfinite, self.losses)):
            return None
        from scipy.stats import t

        half = float(t.ppf(0.975, freedom)) * statistics.stdev(self.losses) / math.sqrt(len(self.losses))
        return self.mean - half, self.mean + half


def permutation_importance(
    estimator: Estimator,
    input_fn: Callable[..., Any],
    *,
    features: Sequence[str | Sequence[str]] | None = None,
    metrics: Sequence[str] | None = None,
    repeats: int = 5,
    seed: int = 0,
    rows: int = 10_000,
    checkpoint_path: str | None = None,
) -> list[Importance]:
    """How much worse each metric becomes when the values of each feature are shuffled among the rows.

    Rows are evaluated as any evaluation does it, host transforms included, in a directory of its own: nothing is
    written to the model_dir. Features that say the same share their importance: shuffle them together.

    Args:
        estimator: a trained Estimator.
        input_fn: returns batches whose features are a flat dict.
        features: names, and groups of names that are shuffled together; None: each feature by itself.
        metrics: names of results of an evaluation; None: all numbers that say how good the model is. Less is better of
            losses, errors and their like, by the words of the name, of all others more. "name:min" and "name:max" say
            it otherwise.
        repeats: shuffles of each feature.
        seed: of the shuffles.
        rows: the largest number of rows, which are held in memory.
        checkpoint_path: a checkpoint to explain instead of the newest.

    Returns:
        One record for each feature and metric, the most important feature of the first metric first.

    Raises:
        ArgumentError: there is no such feature or metric, or the rows cannot be used.
        CheckpointNotFoundError: nothing has been trained.

    Source: Breiman, "Random Forests", 2001; Fisher, Rudin and Dominici, "All Models are Wrong, but Many are Useful",
    2019.
    """
    for argument, value, least in (("repeats", repeats, 1), ("rows", rows, 1), ("seed", seed, 0)):
        if value < least:
            raise ArgumentError(f"{argument} must be at least {least}, given: {value}.")
    table = read_rows(estimator, input_fn, rows)
    groups = _groups(features, table)
    path = checkpoint_path or estimator.latest_checkpoint()
    if path is None:
        raise CheckpointNotFoundError(f"There is no checkpoint in {estimator.model_dir}. Train first.")
    random = np.random.default_rng(seed)
    found: list[Importance] = []
    with tempfile.TemporaryDirectory() as scratch:
        apart = ec.with_model_fn(estimator, estimator.model_fn, estimator.config.replace(model_dir=scratch))

        def evaluated(changed: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
            return apart.evaluate(table.input_fn(changed), checkpoint_path=path)

        before = evaluated({})
        chosen = _metrics(metrics, before)
        for group in groups:
            orders = [random.permutation(table.count) for _ in range(repeats)]
            after = [evaluated({name: table.features[name][order] for name in group}) for order in orders]
            for metric in chosen:
                sign = 1.0 if chosen[metric] else -1.0
                losses = tuple(sign * (float(one[metric]) - float(before[metric])) for one in after)
                found.append(Importance(features=group, metric=metric, baseline=float(before[metric]), losses=losses))
    first = {one.features: place_of(one) for one in found if one.metric == next(iter(chosen))}
    return sorted(found, key=lambda one: first[one.features])


def place_of(one: Importance) -> float:
    """What sorts the most important feature first. One whose importance is not a number comes last."""
    return math.inf if math.isnan(one.mean) else -one.mean


def _groups(features: Sequence[str | Sequence[str]] | None, table: Rows) -> list[tuple[str, ...]]:
    groups = [(one,) if isinstance(one, str) else tuple(one) for one in features or table.features]
    unknown = sorted({name for group in groups for name in group} - set(table.features))
    if unknown:
        raise ArgumentError(f"There are no features {unknown}. The input has {sorted(table.features)}.")
    return groups


def _metrics(metrics: Sequence[str] | None, results: Mapping[str, Any]) -> dict[str, bool]:
    """The metrics to look at, and of which of them less is better."""
    numbers = [name for name, value in results.items() if np.ndim(value) == 0 and not _is_of_data(name)]
    asked = [_direction(one) for one in (numbers if metrics is None else metrics)]
    unknown = sorted({name for name, _ in asked} - set(numbers))
    if unknown:
        raise ArgumentError(f"There are no metrics {unknown}. The evaluation has {numbers}.")
    if not asked:
        raise ArgumentError("The evaluation has no metric that says how good the model is.")
    return {name: less_is_better(name) if less is None else less for name, less in asked}


def _direction(asked: str) -> tuple[str, bool | None]:
    name, colon, direction = asked.rpartition(":")
    return (name, direction == "min") if colon and direction in ("min", "max") else (asked, None)


def _is_of_data(name: str) -> bool:
    return any(name == known or name.startswith(f"{known}/") for known in _NOT_QUALITY)
