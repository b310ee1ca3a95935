"""Permutation importance: how much worse a metric becomes when the values of a feature are shuffled."""

from __future__ import annotations

import logging
import math
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.errors import ArgumentError, CheckpointNotFoundError, InputError, check_count
from estimator_core.estimator import Estimator
from estimator_core.metrics import less_is_better
from estimator_explain.fingerprint import FINGERPRINT, with_fingerprint
from estimator_explain.rows import IS_REAL_EXAMPLE, Rows, read_rows

_log = logging.getLogger("estimator_explain")

#: Results that do not measure the quality of a model. With named heads, the name of the head follows.
_NOT_QUALITY = ("global_step", "label/mean", "prediction/mean", "accuracy_baseline", "probability_mean")


@dataclass(frozen=True, kw_only=True)
class Importance:
    """The amount by which one metric becomes worse without one feature.

    Args:
        features: the features that were shuffled together.
        metric: the name of the metric.
        baseline: the value of the metric on the unchanged rows.
        losses: the amount by which the metric became worse, by repetition. It is positive if the model needs the
            feature, whether higher or lower values of the metric are better.
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
        """The 95% interval of the mean over shuffles, by Student's t.

        None for one repetition, or for a loss that is not finite.

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
    """Returns how much worse each metric becomes when the values of each feature are shuffled among the rows.

    Rows are evaluated as in any evaluation, including host transforms, in a separate directory. Nothing is written to
    the model_dir. Features with the same information share their importance, so shuffle them together.

    Args:
        estimator: a trained Estimator.
        input_fn: a function that returns batches whose features are a flat dict.
        features: the names, and groups of names that are shuffled together. None: each feature by itself, except those
            that change metrics without a prediction, such as weights. The log names them.
        metrics: the names of results of an evaluation. None: all numbers that measure the quality of the model. Lower
            values are better for losses, errors and similar words in the name, and higher values for all others.
            "name:min" and "name:max" set the direction.
        repeats: the number of shuffles of each feature.
        seed: the seed of the shuffles.
        rows: the largest number of rows, which are held in memory.
        checkpoint_path: a checkpoint to explain instead of the newest.

    Returns:
        One record for each feature and metric, the most important feature of the first metric first.

    Raises:
        ArgumentError: a feature or metric does not exist, or the rows cannot be used, unchanged or shuffled.
        CheckpointNotFoundError: nothing has been trained.

    Source: Breiman, "Random Forests", 2001; Fisher, Rudin and Dominici, "All Models are Wrong, but Many are Useful",
    2019.
    """
    for argument, value, least in (("repeats", repeats, 1), ("rows", rows, 1), ("seed", seed, 0)):
        check_count(argument, value, least=least)
    table = read_rows(estimator, input_fn, rows)
    groups = _groups(features, table)
    path = checkpoint_path or estimator.latest_checkpoint()
    if path is None:
        raise CheckpointNotFoundError(f"There is no checkpoint in {estimator.model_dir}. Train first.")
    random = np.random.default_rng(seed)
    found: list[Importance] = []
    with tempfile.TemporaryDirectory() as scratch:
        config = estimator.config.replace(model_dir=scratch)
        apart = ec.with_model_fn(estimator, with_fingerprint(estimator.model_fn), config)

        def evaluated(changed: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
            return apart.evaluate(table.input_fn(changed), checkpoint_path=path)

        before = evaluated({})
        chosen = _metrics(metrics, before)
        for number, group in enumerate(groups, 1):
            _log.info("Shuffling %s (%d of %d)", ", ".join(group), number, len(groups))
            orders = [random.permutation(table.count) for _ in range(repeats)]
            try:
                after = [evaluated({name: table.features[name][order] for name in group}) for order in orders]
            except InputError as error:
                raise ArgumentError(
                    f"The rows cannot be evaluated while {','.join(group)} is shuffled: {error} Features that belong "
                    'together, such as sequences of one length, are shuffled together: features=[("a", "b")]. In the '
                    "command: --features a,b."
                ) from error
            if features is None and _only_weighs(before, after, tuple(chosen)):
                _log.warning("%s is not explained: it changes metrics, but no prediction.", group[0])
                continue
            for metric in chosen:
                sign = 1.0 if chosen[metric] else -1.0
                losses = tuple(sign * (float(one[metric]) - float(before[metric])) for one in after)
                found.append(Importance(features=group, metric=metric, baseline=float(before[metric]), losses=losses))
    if not found:
        raise ArgumentError("No feature changes a prediction. Name features to explain them anyway.")
    first = {one.features: place_of(one) for one in found if one.metric == next(iter(chosen))}
    return sorted(found, key=lambda one: first[one.features])


def place_of(one: Importance) -> float:
    """Returns the sort key, the most important feature first. An importance that is NaN comes last."""
    return math.inf if math.isnan(one.mean) else -one.mean


def _only_weighs(before: Mapping[str, Any], after: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> bool:
    """Returns whether metrics changed while all predictions stayed the same, as for a column of weights."""
    if FINGERPRINT not in before or any(one[FINGERPRINT] != before[FINGERPRINT] for one in after):
        return False
    pairs = [(float(one[metric]), float(before[metric])) for one in after for metric in metrics]
    return any(new != old and not (math.isnan(new) and math.isnan(old)) for new, old in pairs)


def _groups(features: Sequence[str | Sequence[str]] | None, table: Rows) -> list[tuple[str, ...]]:
    default = [name for name in table.features if name != IS_REAL_EXAMPLE]
    groups = [(one,) if isinstance(one, str) else tuple(one) for one in features or default]
    unknown = sorted({name for group in groups for name in group} - set(table.features))
    if unknown:
        raise ArgumentError(f"There are no features {unknown}. The input has {sorted(table.features)}.")
    return groups


def _metrics(metrics: Sequence[str] | None, results: Mapping[str, Any]) -> dict[str, bool]:
    """Returns the metrics to measure, and for each of them whether lower values are better."""
    scalars = [name for name, value in results.items() if np.ndim(value) == 0 and name != FINGERPRINT]
    numbers = [name for name in scalars if not _is_of_data(name)]
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
