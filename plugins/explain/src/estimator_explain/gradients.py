"""Integrated gradients: the part of a prediction that each number of a row accounts for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

import estimator_core as ec
from estimator_core.errors import ArgumentError, check_count
from estimator_core.estimator import Estimator
from estimator_core.model import nested_scope
from estimator_explain.rows import IS_REAL_EXAMPLE, read_rows

_SCORE = "score"
Numbers = Mapping[str, jax.Array]


@dataclass(frozen=True, kw_only=True)
class Attributions:
    """The amount that each number of each row adds to its score, compared with the baseline.

    Args:
        values: the attributions by feature, float32 of the shape of the feature.
        scores: the score of each row, float32[rows].
        baseline_scores: the score of the same row with its numbers replaced by the baseline, float32[rows].
    """

    values: Mapping[str, np.ndarray]
    scores: np.ndarray
    baseline_scores: np.ndarray

    @property
    def residual(self) -> float:
        """The largest distance between the sum of the attributions of a row and the change of its score.

        It falls with the number of steps. If it is large, the attributions are not reliable.
        """
        rows = len(self.scores)
        total = sum(np.reshape(value, (rows, -1)).sum(axis=1) for value in self.values.values())
        return float(np.max(np.abs(total - (self.scores - self.baseline_scores))))

    @property
    def strength(self) -> dict[str, float]:
        """The mean absolute attribution of each feature, the strongest first."""
        found = {
            name: float(np.abs(np.reshape(value, (len(value), -1)).sum(axis=1)).mean())
            for name, value in self.values.items()
        }
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def integrated_gradients(
    estimator: Estimator,
    input_fn: Callable[..., Any],
    *,
    output: str = "logits",
    class_id: int | None = None,
    baseline: Literal["mean", "zero"] | Mapping[str, float] = "mean",
    steps: int = 64,
    rows: int = 1_000,
    checkpoint_path: str | None = None,
) -> Attributions:
    """Returns the amount that each number of each row adds to a prediction, along the straight line from a baseline.

    Numbers are the float features that model_fn receives, after host transforms. All other features (ids, words) keep
    their values, and permutation importance covers them. A missing number (NaN) stays missing and gets 0.

    Args:
        estimator: a trained Estimator whose predictions are a dict.
        input_fn: a function that returns batches whose features are a flat dict.
        output: the prediction to explain, [batch], [batch, 1] or [batch, classes]. With several heads "head/logits".
        class_id: the class to explain. None: the class that the model predicts for the row.
        baseline: the mean of each number over the rows, zero, or a number by feature. The mean of a step of a sequence
            is that of the rows that have the step.
        steps: the number of points on the line at which gradients are computed.
        rows: the largest number of rows.
        checkpoint_path: a checkpoint to explain instead of the newest.

    Raises:
        ArgumentError: the prediction or class does not exist, or there are no float features.
        CheckpointNotFoundError: nothing has been trained.

    Source: Sundararajan, Taly and Yan, "Axiomatic Attribution for Deep Networks", 2017.
    """
    for argument, value in (("steps", steps), ("rows", rows)):
        check_count(argument, value)
    table = read_rows(estimator, input_fn, rows)
    seen = _predicted(estimator, _numbers_of, table.input_fn(), checkpoint_path)
    if not seen:
        raise ArgumentError("model_fn receives no float features, so there is nothing to integrate over.")
    start = _start(baseline, seen)
    function = _explaining(estimator.model_fn, output, class_id, start, steps)
    found = _predicted(estimator, function, table.input_fn(), checkpoint_path)
    values = {name: found[f"value/{name}"] for name in seen}
    return Attributions(values=values, scores=found[_SCORE], baseline_scores=found["baseline"])


def _numbers_of(features: Mapping[str, Any], labels: Any, mode: str, config: Any) -> ec.EstimatorSpec:
    return ec.EstimatorSpec(
        mode, predictions={name: _without_padding(name, array, features) for name, array in _floats(features).items()}
    )


def _without_padding(name: str, array: jax.Array, features: Mapping[str, Any]) -> jax.Array:
    """Returns a feature with NaN at the places that only fill up a row of a column: steps after the end of a sequence,
    and weights without a word.
    """
    column, _, part = name.rpartition(".")
    lengths, ids = features.get(f"{column}.lengths"), features.get(f"{column}.ids")
    if part == "numbers" and lengths is not None and lengths.ndim == 1 < array.ndim:
        held = jnp.arange(array.shape[1]) < lengths[:, None]
        held = held.reshape(*held.shape, *(1,) * (array.ndim - 2))
    elif part == "weights" and ids is not None and ids.shape == array.shape:
        held = ids >= 0
    else:
        return array
    return jnp.where(held, array, jnp.nan)


def _floats(features: Mapping[str, Any]) -> dict[str, jax.Array]:
    given = {name: array for name, array in features.items() if name != IS_REAL_EXAMPLE}
    return {name: array for name, array in given.items() if jnp.issubdtype(array.dtype, jnp.floating)}


def _start(baseline: str | Mapping[str, float], seen: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the start of the line, without the axis of the rows."""
    if baseline == "mean":
        return {name: _mean(array) for name, array in seen.items()}
    given = {} if isinstance(baseline, str) else dict(baseline)
    if isinstance(baseline, str) and baseline != "zero":
        raise ArgumentError(f'baseline must be "mean", "zero" or numbers by feature, given: {baseline!r}.')
    if unknown := sorted(given.keys() - seen.keys()):
        raise ArgumentError(f"baseline: there are no float features {unknown}. Float features: {sorted(seen)}.")
    return {name: np.full(array.shape[1:], given.get(name, 0.0), array.dtype) for name, array in seen.items()}


def _mean(array: np.ndarray) -> np.ndarray:
    """Returns the mean over the rows, without NaN. It is 0 where all are NaN."""
    known = ~np.isnan(array)
    return np.where(known, array, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1).astype(array.dtype)


def _explaining(
    inner: Callable[..., ec.EstimatorSpec],
    output: str,
    class_id: int | None,
    start: Mapping[str, np.ndarray],
    steps: int,
) -> Callable[..., ec.EstimatorSpec]:
    """Returns a model_fn whose predictions are attributions."""

    def model_fn(features: Mapping[str, Any], labels: Any, mode: str, config: Any) -> ec.EstimatorSpec:
        def scores(numbers: Numbers) -> jax.Array:
            own = {name: number.astype(features[name].dtype) for name, number in numbers.items()}
            return _matrix(inner({**features, **own}, None, mode, config).predictions, output)

        def score(numbers: Numbers) -> jax.Array:
            with nested_scope():  # the variables are those of the first call, which declares them
                return jnp.take_along_axis(scores(numbers), chosen, axis=1)[:, 0]

        ends = {name: jnp.asarray(array, jnp.float32) for name, array in _floats(features).items()}
        whole = scores(ends)
        chosen = _chosen(whole, class_id)
        starts = {name: jnp.where(jnp.isnan(end), end, start[name]) for name, end in ends.items()}
        ways = {name: jnp.where(jnp.isnan(end), 0.0, end - start[name]) for name, end in ends.items()}

        def add(total: Numbers, share: jax.Array) -> tuple[Numbers, None]:
            point = {name: starts[name] + share * ways[name] for name in ends}
            slope = jax.grad(lambda numbers: jnp.sum(score(numbers)))(point)
            return {name: total[name] + slope[name] / steps for name in ends}, None

        middles = (jnp.arange(steps, dtype=jnp.float32) + 0.5) / steps
        slopes, _ = jax.lax.scan(add, {name: jnp.zeros_like(end) for name, end in ends.items()}, middles)
        values = {f"value/{name}": jnp.where(ways[name] == 0, 0.0, slopes[name] * ways[name]) for name in ends}
        return ec.EstimatorSpec(mode, predictions={**values, _SCORE: score(ends), "baseline": score(starts)})

    return model_fn


def _matrix(predictions: Any, output: str) -> jax.Array:
    """Returns the prediction to explain, [batch, classes]."""
    named = {_name(key): array for key, array in predictions.items()} if isinstance(predictions, Mapping) else {}
    if output not in named:
        raise ArgumentError(
            f"There is no prediction {output!r} to explain. The model predicts {sorted(named) or 'one array'}. "
            "Name one with output (--output)."
        )
    array = jnp.asarray(named[output], jnp.float32)
    if array.ndim not in (1, 2):
        raise ArgumentError(
            f"Prediction {output!r} has the shape {array.shape}, but must be [batch] or [batch, classes]."
        )
    return array[:, None] if array.ndim == 1 else array


def _name(key: object) -> str:
    """Returns the name of a prediction. With several heads, its key is a tuple of head and name."""
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _chosen(scores: jax.Array, class_id: int | None) -> jax.Array:
    """Returns the column to explain for each row, [batch, 1]."""
    classes = scores.shape[1]
    if class_id is None:
        return jnp.argmax(scores, axis=1, keepdims=True)
    if not 0 <= class_id < classes:
        raise ArgumentError(f"class_id must be between 0 and {classes - 1}, given: {class_id}.")
    return jnp.full((scores.shape[0], 1), class_id)


def _predicted(
    estimator: Estimator, model_fn: Callable[..., Any], input_fn: Callable[..., Any], path: str | None
) -> dict[str, np.ndarray]:
    """Returns all predictions of another model_fn with the same weights, by name."""
    other = ec.with_model_fn(estimator, model_fn)
    batches = list(other.predict(input_fn, checkpoint_path=path, yield_single_examples=False))
    return {name: np.concatenate([np.asarray(batch[name]) for batch in batches]) for name in batches[0]}
