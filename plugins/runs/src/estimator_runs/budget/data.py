"""Learning curves over the size of the data: what runs on a part of the rows reach, and what more rows would bring."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.inputs import numpy_input_fn
from estimator_runs.budget.curve import Prediction, extrapolate
from estimator_runs.folds.rows import read_rows


@dataclass(frozen=True, kw_only=True)
class DataCurve:
    """What runs on different numbers of rows reached.

    Args:
        metric: its name.
        sizes: numbers of rows, ascending.
        values: of the metric, for each size one value a seed.
        predictions: for more rows.
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
    rows: int = 65536,
    sizes: int = 5,
    seeds: int = 3,
    multiples: Sequence[int] = (2, 4, 10),
    eval_steps: int | None = None,
) -> DataCurve:
    """Trains on parts of the data, each half of the next, with several seeds. Keeps nothing.

    Args:
        estimator: the estimator; nothing of it is changed or written.
        input_fn: its training input, of which the first rows are read once. The rows of a part are drawn by the seed.
        eval_input_fn: what each run is judged by.
        steps: of each run.
        metric: of the evaluation.
        rows: the largest size; fewer if the input ends earlier.
        sizes: how many sizes.
        seeds: runs for each size.
        multiples: of the largest size, for which the metric is predicted.
        eval_steps: of an evaluation; None: to the end of its input.

    Raises:
        ArgumentError: there are too few rows, sizes or seeds, or the evaluation lacks the metric.
    """
    first = estimator.first_batch(input_fn)
    batch = 1 if first is None else first.size
    found = read_rows(input_fn, params=estimator.params, config=estimator.config, most=rows)
    chosen = [len(found) >> halved for halved in reversed(range(max(1, sizes)))]
    if sizes < 3 or seeds < 1 or chosen[0] < batch:
        raise ArgumentError(
            f"A learning curve needs 3 sizes, a seed, and at its smallest size a batch of {batch} rows: {len(found)} "
            f"rows were read for {sizes} sizes of {seeds} seeds."
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
            values[-1].append(float(reached[metric]))
    wanted = [multiple * chosen[-1] for multiple in multiples]
    return DataCurve(
        metric=metric, sizes=chosen, values=values, predictions=extrapolate(chosen, values, wanted) if wanted else []
    )


def _reached(
    estimator: ec.Estimator, inputs: Any, eval_inputs: Any, seed: int, steps: int, eval_steps: int | None
) -> Any:
    """The metrics of a run of its own, in a directory that is removed."""
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
