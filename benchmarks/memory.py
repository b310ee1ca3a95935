"""Peak memory of predict and evaluate over some data, and over ten times as much.

    uv run python benchmarks/memory.py [--batches 400] [--rounds 15] [--json FILE]

Each measurement is a separate process, so its peak resident size is its own. The data are drawn batch by batch.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from _report import report, write
from _side_by_side import compared

BATCH, WIDTH = 256, 512
VERBS = ("predict", "evaluate")


def measured(verb: str, batches: int) -> int:
    """Returns the peak bytes of a process that reads this number of batches."""
    command = [sys.executable, __file__, "--child", verb, "--batches", str(batches)]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def child(verb: str, batches: int) -> None:
    """Trains for a step, reads the data, and prints the peak."""
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
    """Compares the peak memory over ten times the data with the peak memory over the data."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", choices=VERBS)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.batches)
        return
    megabytes = args.batches * BATCH * (WIDTH + 8) * 4 / 1e6
    sizes = {f"{megabytes * times:.0f} MB of data": times * args.batches for times in (1, 10)}
    found: dict[str, list[float]] = {f"{verb}, {size}": [] for verb in VERBS for size in sizes}
    order = np.random.default_rng(0)
    for verb in VERBS:
        measured(verb, 1)  # the other processes read the compiled programs from the cache
    for _ in range(args.rounds):
        for verb, size in order.permutation([(verb, size) for verb in VERBS for size in sizes]):
            found[f"{verb}, {size}"].append(measured(verb, sizes[size]))
    one, ten = sizes
    pairs = [(f"{verb}, {ten}", f"{verb}, {one}") for verb in VERBS]
    results = [compared(found, *pair, smaller_is_better=True) for pair in pairs]
    title, targets = "Peak memory over ten times the data", dict.fromkeys(pairs, 1.05)
    write(args.json, report(title, results, steps=1, targets=targets, unit=("MB", 1e-6)))


if __name__ == "__main__":
    main()
