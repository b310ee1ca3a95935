"""Predictions of 200,000 rows in batches of 32, whole batches and single examples: MLP 64-128-128-10.

    uv run python benchmarks/predict.py [--rounds 15] [--rows 200000] [--tf-python PYTHON] [--json FILE]

The hand-written loop slices the array, and fetches a batch when two more are in progress. Keras predicts the whole
array with its own batches. tf.estimator yields single examples, for a tenth of the rows.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from _mlp_model import arrays, trained
from _peers import keras_mlp, tf_estimator
from _report import report, write
from _side_by_side import compare
from mlp import BATCH, WIDTHS, initial_variables, logits_of

import estimator_core as ec


def hand_written(x: np.ndarray) -> Callable[[], None]:
    """Returns a loop in which the device is two batches ahead."""
    predict = jax.jit(lambda variables, x: {"logits": logits_of(variables, x)})
    variables = initial_variables()

    def run() -> None:
        waiting: deque[Any] = deque()
        rows = 0
        for start in range(0, len(x), BATCH):
            waiting.append(predict(variables, x[start : start + BATCH]))
            if len(waiting) > 2:
                rows += len(jax.device_get(waiting.popleft())["logits"])
        rows += sum(len(jax.device_get(left)["logits"]) for left in waiting)
        assert rows == len(x)

    return run


def estimator_predict(estimator: ec.Estimator, x: np.ndarray, *, single: bool) -> Callable[[], None]:
    """Returns the warm Estimator."""
    source = ec.inputs.numpy_input_fn({"x": x}, batch_size=BATCH, shuffle=False)

    def run() -> None:
        predictions = estimator.predict(source, yield_single_examples=single)
        rows = sum(1 if single else len(each["logits"]) for each in predictions)
        assert rows == len(x)

    return run


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--tf-python")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    x = arrays(args.rows)[0]["x"]
    estimator, keras = trained(), keras_mlp(WIDTHS)
    contestants: dict[str, Callable[[], None]] = {
        "hand-written loop": hand_written(x),
        "estimator, whole batches": estimator_predict(estimator, x, single=False),
        "estimator, single examples": estimator_predict(estimator, x, single=True),
        "Keras": lambda: keras.predict(x, batch_size=BATCH, verbose=0),
    }
    results = compare(
        contestants, reference="hand-written loop", rounds=args.rounds, pairs=[("estimator, whole batches", "Keras")]
    )
    title = f"Predictions of {args.rows} rows in batches of {BATCH}"
    whole = "estimator, whole batches"
    targets = {(whole, "hand-written loop"): 0.95, (whole, "Keras"): 2.0}
    tables = [report(title, results, steps=args.rows // BATCH, targets=targets)]
    few = args.rows // 10
    peers = tf_estimator(args.tf_python, "predict", rows=few)
    if peers:
        ours = {"estimator, single examples": estimator_predict(estimator, x[:few], single=True)}
        results = compare(ours | peers, reference="tf.estimator", rounds=min(args.rounds, 7))
        title = f"Predictions of {few} rows, single examples"
        targets = {("estimator, single examples", "tf.estimator"): 5.0}
        tables.append(report(title, results, steps=few // BATCH, targets=targets))
    write(args.json, *tables)


if __name__ == "__main__":
    main()
