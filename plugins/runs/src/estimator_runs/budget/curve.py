"""A power law of the number of rows, fitted to the results of runs, with intervals at other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from estimator_core.errors import ArgumentError

_POWERS = np.geomspace(0.05, 2.0, 80)
_RESAMPLES = 2000
#: The number of parameters of the curve. A fit needs more runs than that.
PARAMETERS = 3


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The predicted result of a run on more rows.

    Args:
        rows: the number of rows of the training input.
        value: the value of the metric on the fitted curve.
        low: the lower end of the 95% interval for a run.
        high: the upper end.
    """

    rows: int
    value: float
    low: float
    high: float


def extrapolate(
    sizes: Sequence[int], values: Sequence[Sequence[float]], wanted: Sequence[int], *, seed: int = 0
) -> list[Prediction]:
    """Fits `limit + factor * rows ** -power`, and predicts.

    Residuals are resampled, the curve is fitted again, and a residual is added for the run itself. The interval holds
    if the metric is a power law.

    Args:
        sizes: the numbers of rows, at least three different ones.
        values: for each size, the values of the metric of its runs, which must be finite.
        wanted: the numbers of rows to predict.
        seed: the seed of the resampling.

    Raises:
        ArgumentError: there are too few sizes or runs, or a value is not finite.

    Example:
        >>> found = extrapolate([100, 200, 400, 800], [[0.1 + n**-0.5] * 2 for n in (100, 200, 400, 800)], [3200])
        >>> round(found[0].value, 2)
        0.12
    """
    rows = np.repeat(np.asarray(sizes, float), [len(one) for one in values])
    reached = np.concatenate([np.asarray(one, float) for one in values])
    if len(set(sizes)) < PARAMETERS or len(rows) <= PARAMETERS:
        raise ArgumentError(
            f"A curve with {PARAMETERS} parameters needs more than {PARAMETERS} runs at {PARAMETERS} sizes or more: "
            f"there are {len(rows)} runs at {len(set(sizes))} sizes."
        )
    for size, one in zip(sizes, values, strict=True):
        for seed, value in enumerate(one):
            if not np.isfinite(value):
                raise ArgumentError(
                    f"The value of run {seed} on {size} rows is {value}, and a curve is fitted to finite values only. "
                    "Leave this run out."
                )
    scale = rows.max()
    at = np.asarray(wanted, float) / scale
    fitted, predicted = _fit(rows / scale, reached[None], at)
    residuals = (reached - fitted[0]) * np.sqrt(len(rows) / (len(rows) - PARAMETERS))
    random = np.random.default_rng(seed)
    again = fitted + residuals[random.integers(len(rows), size=(_RESAMPLES, len(rows)))]
    _, drawn = _fit(rows / scale, again, at)
    drawn = drawn + residuals[random.integers(len(rows), size=drawn.shape)]
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    return [
        Prediction(rows=size, value=float(predicted[0, place]), low=float(low[place]), high=float(high[place]))
        for place, size in enumerate(wanted)
    ]


def _fit(rows: np.ndarray, reached: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fits by least squares: the best limit and factor for each power of a grid. It needs no start value.

    Args:
        rows: the numbers of rows, [runs], as fractions of the largest size.
        reached: the values of the metric, [resamples, runs].
        at: the numbers of rows to predict, [wanted], as fractions of the largest size.

    Returns:
        The curve at `rows`, [resamples, runs], and at `at`, [resamples, wanted].
    """
    least = np.full(len(reached), np.inf)
    fitted, predicted = np.zeros_like(reached), np.zeros((len(reached), len(at)))
    for power in _POWERS:
        columns = np.stack([np.ones_like(rows), rows**-power], axis=1)
        found = reached @ np.linalg.pinv(columns).T
        here = found @ columns.T
        squares = ((reached - here) ** 2).sum(axis=1)
        better = squares < least
        least[better] = squares[better]
        fitted[better] = here[better]
        predicted[better] = (found @ np.stack([np.ones_like(at), at**-power]))[better]
    return fitted, predicted
