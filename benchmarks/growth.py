"""How cost grows: a step with variables, features, hooks and rows of an embedding table, an evaluation with metrics.

Also a round with EvalSpecs and with earlier rounds, an epoch with rows, a job with processes, and the first step of a
process with installed packages.

    uv run python benchmarks/growth.py [--only NAME ...] [--sizes N ...] [--rounds 5] [--steps 200] [--json FILE]

Every size has its own Estimator, which is warm before it is measured; the sizes of a curve take turns. The exponent is
the slope of the logarithm of the time over that of the size, between a size and the previous one. If it is above 1, the
cost grows faster than the size.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
from _finished import Finished
from _report import report, write
from _side_by_side import Comparison, compare
from many_packages import WORK, install, process

import estimator_core as ec

BATCH = 32
Work = Callable[[], object]


def model_of(variables: int, metrics: int = 1) -> Callable[..., Any]:
    """Returns a linear model with these numbers of variables and metrics, which reads all features."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        x = sum(features.values())
        weights = [ec.get_variable(f"w{index}", (4,)) for index in range(variables)]
        logits = (x @ jnp.stack(weights, axis=1)).mean(axis=1)
        errors = (logits - labels) ** 2
        return ec.EstimatorSpec(
            mode,
            loss=errors.mean(),
            train_op=optax.adam(1e-3),
            predictions=logits,
            eval_metric_ops={f"m{index}": ec.metrics.mean(errors + index) for index in range(metrics)},
        )

    return model_fn


def batches(features: int) -> Iterator[Any]:
    """Yields the same batch again and again."""
    x = {f"x{index}": np.ones((BATCH, 4), np.float32) for index in range(features)}
    y = np.zeros(BATCH, np.float32)
    while True:
        yield x, y


def estimator(model_fn: Callable[..., Any], save_steps: int | None = None) -> ec.Estimator:
    """Returns an Estimator without checkpoints during training."""
    config = ec.RunConfig(
        model_dir=tempfile.mkdtemp(prefix="bench-growth-"),
        tf_random_seed=1,
        save_checkpoints_steps=save_steps,
        save_checkpoints_secs=None,
    )
    return ec.Estimator(model_fn, config=config)


class Looks(ec.Hook):
    """Runs every ten steps and reads the loss."""

    def next_step(self, step: int) -> int:
        return (step // 10 + 1) * 10

    def after_step(self, run: Any, step: int, out: Any) -> None:
        float(out["loss"])


def training(steps: int, *, variables: int = 2, features: int = 1, hooks: int = 0) -> Work:
    """Returns a call of `train`. Each call starts the input again: a replay of earlier batches would count as steps."""
    trained = estimator(model_of(variables))
    source = ec.inputs.from_iterable(lambda: batches(features), replay=False)
    return lambda: trained.train(source, steps=steps, hooks=[*(Looks() for _ in range(hooks)), Finished()])


def evaluation(steps: int, metrics: int) -> Work:
    """Returns a call of `evaluate`, after the calls that compile: for one batch, and for groups if they are faster."""
    trained = estimator(model_of(2, metrics)).train(lambda: batches(1), steps=1)
    for _ in range(3):
        trained.evaluate(lambda: batches(1), steps=steps)
    return lambda: trained.evaluate(lambda: batches(1), steps=steps)


def rounds_of_specs(specs: int) -> Work:
    """Returns a `train_and_evaluate` of 20 steps that ends with this number of evaluations of ten batches."""
    trained, done = estimator(model_of(2), save_steps=1_000_000), [0]

    def run() -> None:
        done[0] += 20
        named = [ec.EvalSpec(lambda: batches(1), steps=10, name=f"e{index}") for index in range(specs)]
        ec.train_and_evaluate(trained, ec.TrainSpec(lambda: batches(1), max_steps=done[0]), named)

    return run


def epoch(rows: int) -> Work:
    """Returns a call of `train` that reads shuffled rows in memory once."""
    trained = estimator(model_of(2))
    x = {"x0": np.ones((rows, 4), np.float32)}
    input_fn = ec.inputs.numpy_input_fn(x, np.zeros(rows, np.float32), batch_size=256, shuffle=True, seed=1)
    return lambda: trained.train(input_fn, hooks=[Finished()])


def call_after(rounds: int) -> Work:
    """Returns calls of `train` and `evaluate`, of one step each, in a model_dir with this number of earlier rounds."""
    trained = estimator(model_of(2))

    def run() -> None:
        trained.train(lambda: batches(1), steps=1)
        trained.evaluate(lambda: batches(1), steps=1)

    for _ in range(rounds):
        run()
    return run


def embedding(steps: int, rows: int) -> Work:
    """Returns a call of `train` that looks up 1,024 ids per step in a table with this number of rows of 16 numbers."""
    import estimator_canned_tabular as tab

    table = tab.embedding_column(tab.categorical_column_with_identity("id", rows), 16)
    config = ec.RunConfig(tf_random_seed=1, save_checkpoints_steps=None, save_checkpoints_secs=None)
    trained = tab.DNNClassifier([32], [table], config=config)
    ids = np.random.default_rng(0).integers(0, rows, (20, 1024, 1))
    labels = np.zeros((1024, 1), np.int32)

    def drawn() -> Iterator[Any]:
        return (({"id": ids[step % 20]}, labels) for step in range(steps))

    return lambda: trained.train(drawn, hooks=[Finished()])


JOB = """
from estimator_core.testing import tiny_estimator, tiny_input_fn

tiny_estimator("model").train(tiny_input_fn(), steps=20)
"""


def job(processes: int) -> Work:
    """Returns an `estimator launch` of a program that trains for 20 steps."""
    command = [sys.executable, "-m", "estimator_core._cli.main", "launch", "--processes", str(processes)]

    def run() -> None:
        with tempfile.TemporaryDirectory(prefix="bench-growth-") as place:
            Path(place, "job.py").write_text(JOB)
            done = subprocess.run(
                [*command, "--", sys.executable, "job.py"], cwd=place, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise SystemExit(done.stderr)

    return run


def beside_packages(packages: int) -> Work:
    """Returns the first step of a process with this number of installed packages, all on the allow list."""
    place = Path(tempfile.mkdtemp(prefix="bench-growth-"))
    (folder := place / "packages").mkdir()
    allowed = install(folder, packages)
    return lambda: process(folder, allowed, place / "cache", *WORK["first step"])


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The work by size, and whether its cost is counted per step or per call."""

    sizes: tuple[int, ...]
    work: Callable[[int, int], Work]
    by_step: bool = True


#: The quantities with which cost grows. `work` accepts a size and the steps of a call.
CURVES: dict[str, Curve] = {
    "variables": Curve(sizes=(10, 100, 1000), work=lambda size, steps: training(steps, variables=size)),
    "features": Curve(sizes=(10, 100, 1000, 5000), work=lambda size, steps: training(steps, features=size)),
    "hooks": Curve(sizes=(1, 10, 50), work=lambda size, steps: training(steps, hooks=size)),
    "metrics": Curve(sizes=(1, 10, 100), work=lambda size, steps: evaluation(steps, size)),
    "embedding rows": Curve(sizes=(10_000, 100_000, 1_000_000), work=lambda size, steps: embedding(steps, size)),
    "EvalSpecs": Curve(sizes=(1, 5, 20), work=lambda size, steps: rounds_of_specs(size), by_step=False),
    "rows": Curve(sizes=(10_000, 100_000, 1_000_000), work=lambda size, steps: epoch(size), by_step=False),
    "calls": Curve(sizes=(10, 100, 1000), work=lambda size, steps: call_after(size), by_step=False),
    "processes": Curve(sizes=(1, 2, 4), work=lambda size, steps: job(size), by_step=False),
    "plugins": Curve(sizes=(10, 100, 400), work=lambda size, steps: beside_packages(size), by_step=False),
}


def exponents(results: list[Comparison], sizes: list[int]) -> list[str]:
    """Returns the slope between each size and the previous one."""
    seconds = {int(one.name): one.median for one in results} | {sizes[0]: results[0].reference_median}
    return [
        f"{a} to {b}: exponent {math.log(seconds[b] / seconds[a]) / math.log(b / a):.2f}" for a, b in pairwise(sizes)
    ]


def main() -> None:
    """Measures the curves."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=list(CURVES), default=list(CURVES), metavar="NAME")
    parser.add_argument("--sizes", type=int, nargs="+", help="sizes instead of each curve's own")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    tables: list[Any] = []
    for name in args.only:
        curve = CURVES[name]
        sizes: list[int] = args.sizes or list(curve.sizes)
        works = {str(size): curve.work(size, args.steps) for size in sizes}
        results = compare(works, reference=str(sizes[0]), rounds=args.rounds)
        steps, unit = (args.steps, None) if curve.by_step else (1, ("ms", 1e3))
        tables.append(report(f"Cost by {name}", results, steps=steps, unit=unit, notes=exponents(results, sizes)))
    write(args.json, *tables)


if __name__ == "__main__":
    main()
