"""Evaluation with five metrics: 2,000 batches of 32, MLP 64-128-128-10.

    uv run python benchmarks/evaluation.py [--rounds 15] [--batches 2000] [--tf-python PYTHON] [--busy N ...]
        [--json FILE]

The hand-written loop keeps a float32 sum of each metric and of the loss on the device and reads them once, at the end.
The Estimator's totals are exact in any order, which costs more arithmetic.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from _load import add_options, compare_beside, loads_of
from _mlp_model import arrays, loss_of, trained, values_of
from _peers import tf_estimator
from _report import report, write
from mlp import BATCH, initial_variables, logits_of

import estimator_core as ec


def hand_written(x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    """Returns a loop with sums on the device."""

    @jax.jit
    def add(sums: Any, variables: Any, x: Any, y: Any) -> Any:
        logits = logits_of(variables, x)
        new = {name: value.sum() for name, value in values_of(y, logits).items()}
        return jax.tree.map(jnp.add, sums, {**new, "loss": loss_of(logits, y)})

    variables = initial_variables()

    def run() -> Any:
        names = ["accuracy", "top_3", "brier", "confidence", "entropy", "loss"]
        sums = dict.fromkeys(names, jnp.float32(0))
        for start in range(0, len(x), BATCH):
            sums = add(sums, variables, x[start : start + BATCH], y[start : start + BATCH])
        batches = len(x) // BATCH
        return {name: float(value) / (batches if name == "loss" else len(x)) for name, value in sums.items()}

    return run


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--tf-python")
    parser.add_argument("--json", type=Path)
    add_options(parser)
    args = parser.parse_args()
    x, y = arrays(args.batches * BATCH)
    estimator = trained()
    plain, one_by_one = trained(default_hooks=False), trained(batches_per_dispatch=1)
    source = ec.inputs.numpy_input_fn(x, y, batch_size=BATCH, shuffle=False)
    contestants = {
        "hand-written loop": hand_written(x["x"], y),
        "estimator": lambda: estimator.evaluate(source),
        "estimator, no default hooks": lambda: plain.evaluate(source),
        "estimator, batch by batch": lambda: one_by_one.evaluate(source),
        **tf_estimator(args.tf_python, "evaluate", batches=args.batches),
    }
    results = compare_beside(
        loads_of(args),
        contestants,
        reference="hand-written loop",
        rounds=args.rounds,
        pairs=[("estimator", "tf.estimator")],
    )
    title = f"Evaluation of {args.batches} batches, five metrics"
    targets = {("estimator", "hand-written loop"): 0.95, ("estimator, batch by batch", "hand-written loop"): 0.9}
    write(args.json, report(title, results, steps=args.batches, targets=targets))


if __name__ == "__main__":
    main()
