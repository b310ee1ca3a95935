"""Peak memory of predict and evaluate over some data, and over ten times as much.

    uv run python benchmarks/memory.py [--batches 400] [--rounds 5] [--json FILE]

Each measurement is a process of its own, so that its peak resident size is its own. The data are drawn batch by batch.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

BATCH, WIDTH = 256, 512
VERBS = ("predict", "evaluate")


def measured(verb: str, batches: int) -> int:
    """Bytes at the peak of a process that goes over so many batches."""
    command = [sys.executable, __file__, "--child", verb, "--batches", str(batches)]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def child(verb: str, batches: int) -> None:
    """Trains a step, goes over the data, prints the peak."""
    import jax.numpy as jnp
    import optax

    import estimator_core as ec

    def model_fn(features, labels, mode):
        kernel = ec.get_variable("kernel", (WIDTH, 8))
        scores = features @ kernel
        loss = None if labels is None else jnp.mean((scores - labels) ** 2)
        metrics = None if labels is None else {"mse": ec.metrics.mean((labels - scores) ** 2)}
        return ec.EstimatorSpec(
            mode, loss=loss, train_op=optax.sgd(0.1), predictions={"scores": scores}, eval_metric_ops=metrics
        )

    def drawn(count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        generator = np.random.default_rng(0)
        for _ in range(count):
            yield (
                generator.normal(size=(BATCH, WIDTH)).astype(np.float32),
                generator.normal(size=(BATCH, 8)).astype(np.float32),
            )

    with tempfile.TemporaryDirectory() as directory:
        estimator = ec.Estimator(model_fn, directory, config=ec.RunConfig(tf_random_seed=1))
        estimator.train(lambda: drawn(1), steps=1)
        if verb == "evaluate":
            estimator.evaluate(lambda: drawn(batches))
        else:
            rows = sum(1 for _ in estimator.predict(lambda: (x for x, _ in drawn(batches))))
            assert rows == batches * BATCH
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def main() -> None:
    """Prints a table: peak memory over the data and over ten times the data, and their ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", choices=VERBS)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.batches)
        return
    megabytes = args.batches * BATCH * (WIDTH + 8) * 4 / 1e6
    print(f"{megabytes:.0f} MB of data and ten times as much, {args.rounds} alternating rounds")
    print(f"{'verb':<10} {'MB':>8} {'MB, 10x':>8} {'ratio':>7} {'all ratios'}")
    found = {}
    for verb in VERBS:
        measured(verb, 1)  # what is compiled is read from the cache by the others
        pairs = [(measured(verb, args.batches), measured(verb, 10 * args.batches)) for _ in range(args.rounds)]
        ratios = [ten / one for one, ten in pairs]
        one, ten = np.median([pair[0] for pair in pairs]) / 1e6, np.median([pair[1] for pair in pairs]) / 1e6
        print(f"{verb:<10} {one:8.0f} {ten:8.0f} {np.median(ratios):7.3f} {[round(ratio, 3) for ratio in ratios]}")
        found[verb] = {"bytes": [pair[0] for pair in pairs], "bytes_of_ten_times": [pair[1] for pair in pairs]}
    if args.json is not None:
        args.json.write_text(json.dumps({"title": "Peak memory", "batches": args.batches, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
