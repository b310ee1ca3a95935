"""Latency of one row: `Estimator.predictor()` against the jitted function with `device_get`, MLP 64-128-128-10.

uv run python benchmarks/latency.py [--rounds 15] [--calls 3000] [--busy N ...] [--json FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from _load import add_options, compare_beside, loads_of
from _mlp_model import arrays, trained
from _peers import keras_mlp
from _report import report, write
from mlp import WIDTHS, initial_variables, logits_of


def calls(function: Callable[[Any], Any], count: int) -> Callable[[], None]:
    """Returns calls for one row after the other. Each answer is on the host before the next call."""
    rows = [{"x": arrays(count)[0]["x"][index : index + 1]} for index in range(min(count, 100))]

    def run() -> None:
        for index in range(count):
            function(rows[index % len(rows)])

    return run


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--json", type=Path)
    add_options(parser)
    args = parser.parse_args()
    jitted = jax.jit(lambda variables, features: {"logits": logits_of(variables, features["x"])})
    variables, keras = initial_variables(), keras_mlp(WIDTHS)
    contestants = {
        "jitted function": calls(lambda row: jax.device_get(jitted(variables, row)), args.calls),
        "predictor()": calls(trained().predictor(), args.calls),
        "Keras, predict_on_batch": calls(lambda row: np.asarray(keras.predict_on_batch(row["x"])), args.calls),
    }
    results = compare_beside(loads_of(args), contestants, reference="jitted function", rounds=args.rounds)
    targets = {("predictor()", "jitted function"): 0.85}
    write(args.json, report("One row", results, steps=args.calls, targets=targets))


if __name__ == "__main__":
    main()
