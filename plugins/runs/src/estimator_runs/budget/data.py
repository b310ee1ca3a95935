"""Learning curves over the size of the data: the results of runs on parts of the rows, and the effect of more rows."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.inputs import numpy_input_fn
from estimator_runs.budget.curve import PARAMETERS, Prediction, extrapolate
from estimator_runs.folds.rows import read_rows


@dataclass(frozen=True, kw_only=True)
class DataCurve:
    """The results of runs on different numbers of rows.

    Args:
        metric: the name of the metric.
        sizes: the numbers of rows, ascending.
        values: for each size, one value of the metric per seed.
        predictions: the predictions for more rows.
    """

    metric: str
    sizes: Sequence[int]
    values: Sequence[Sequence[float]]
    predictions: Sequence[Prediction]


def data_curve(
    estimator: ec.Estimator,
    input_fn: Callable[..., Any],
    eval_input_fn: Callable[..., Any],
    *,
    steps: int,
    metric: str = "loss",
    rows: int | None = None,
    sizes: int = 5,
    seeds: int = 3,
    multiples: Sequence[int] = (2, 4, 10),
    eval_steps: int | None = None,
) -> DataCurve:
    """Trains on parts of the data, each half as large as the next, with several seeds. The runs are not kept.

    Args:
        estimator: the Estimator, which is not changed. Nothing is written to its model_dir.
        input_fn: the training input, whose first rows are read once. The seed selects the rows of a part.
        eval_input_fn: the input on which each run is evaluated.
        steps: the number of steps of each run.
        metric: the name of a metric of the evaluation.
        rows: the largest size. It is smaller if the input ends or repeats earlier. None: all rows; an endless input
            needs it.
        sizes: the number of sizes.
        seeds: the number of runs for each size.
        multiples: the multiples of the largest size for which the metric is predicted.
        eval_steps: the number of steps of an evaluation; None: up to the end of its input.

    Raises:
        ArgumentError: there are too few rows, sizes, seeds or steps. The input never ends and `rows` is None. The
            evaluation lacks the metric, or its value is not finite.
    """
    _check(steps, rows, sizes, seeds, predicts=bool(multiples))
    first = estimator.first_batch(input_fn)
    batch = 1 if first is None else first.size
    found = read_rows(input_fn, params=estimator.params, config=estimator.config, most=rows)
    chosen = [len(found) >> halved for halved in reversed(range(sizes))]
    if chosen[0] < batch:
        raise ArgumentError(
            f"The smallest size of a learning curve needs a batch of {batch} rows: {len(found)} rows were read for "
            f"{sizes} sizes of {seeds} seeds."
        )
    values: list[list[float]] = []
    for size in chosen:
        values.append([])
        for seed in range(seeds):
            part = found.take(np.random.default_rng(seed).permutation(len(found))[:size])
            inputs = numpy_input_fn(
                dict(part.features), part.labels, batch_size=batch, num_epochs=None, shuffle=True, seed=seed
            )
            reached = _reached(estimator, inputs, eval_input_fn, seed, steps, eval_steps)
            if metric not in reached:
                raise ArgumentError(f"The evaluation has no metric {metric!r}; it has {sorted(reached)}.")
            values[-1].append(_finite(float(reached[metric]), metric, size, seed))
    wanted = [multiple * chosen[-1] for multiple in multiples]
    return DataCurve(
        metric=metric, sizes=chosen, values=values, predictions=extrapolate(chosen, values, wanted) if wanted else []
    )


def _check(steps: int, rows: int | None, sizes: int, seeds: int, *, predicts: bool) -> None:
    """Refuses, before the first run, settings that would fail after the last one."""
    if sizes < 3 or seeds < 1:
        raise ArgumentError(f"A learning curve needs at least 3 sizes and 1 seed, given: {sizes} sizes, {seeds} seeds.")
    if predicts and sizes * seeds <= PARAMETERS:
        raise ArgumentError(
            f"A curve with {PARAMETERS} parameters needs more than {PARAMETERS} runs: {sizes} sizes of {seeds} seeds "
            f"are {sizes * seeds}. Give more seeds or sizes."
        )
    for name, value in (("steps", steps), ("rows", rows)):
        if value is not None and value < 1:
            raise ArgumentError(f"{name} of a learning curve must be at least 1, given: {value}.")


def _finite(value: float, metric: str, size: int, seed: int) -> float:
    if not math.isfinite(value):
        raise ArgumentError(
            f"The metric {metric!r} of the run on {size} rows with seed {seed} is {value}, and a curve is fitted to "
            "finite values only. Leave out sizes that are too small for it (sizes), or choose another metric."
        )
    return value


def _reached(
    estimator: ec.Estimator, inputs: Any, eval_inputs: Any, seed: int, steps: int, eval_steps: int | None
) -> Any:
    """Returns the metrics of a separate run, in a directory that is removed."""
    with tempfile.TemporaryDirectory(prefix="estimator-budget-") as folder:
        config = estimator.config.replace(
            model_dir=str(Path(folder, "run")),
            tf_random_seed=seed,
            save_checkpoints_secs=None,
            save_checkpoints_steps=10**9,
            default_hooks=False,
        )
        copy = ec.with_model_fn(estimator, estimator.model_fn, config)
        copy.train(inputs, max_steps=steps)
        return copy.evaluate(eval_inputs, steps=eval_steps)
