"""The cost of the data checks: a batch of 32 x 64 as it is drawn, and steps of the MLP on a stream.

    uv run python benchmarks/checks.py [--steps 1000] [--rounds 15] [--json FILE]

The check of a batch is timed alone, as the minimum of many short repetitions. For the steps, alternating rounds are
compared: the same stream of batches, checked (`RunConfig.check_inputs`, the default) and unchecked. The targets are at
most 5 microseconds per batch, and at least 0.95 of the unchecked steps.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optax
from _finished import Finished
from _report import report, write
from _side_by_side import compare

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_canned_tabular.models.deep import dnn_model_fn
from estimator_heads import MultiClassHead

ROWS, WIDTH, CLASSES = 32, 64, 10
WANTED_MICROSECONDS = 5.0


def batch() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Returns one batch of the MLP."""
    generator = np.random.default_rng(0)
    return {"x": generator.normal(size=(ROWS, WIDTH)).astype(np.float32)}, generator.integers(0, CLASSES, ROWS)


def model_fn() -> Any:
    """Returns two hidden layers of 64, and the contract of their data."""
    return dnn_model_fn(MultiClassHead(CLASSES), [64, 64], [tab.numeric_column("x", WIDTH)], optax.sgd(0.01))


def microseconds(*, check: bool) -> float:
    """Returns the microseconds of one batch through the checks of the model's data contract."""
    source = [batch()]
    _, convert = model_fn().data_contract.open(source, mode="eval", memory=Path("none"), check=check)
    return min(timeit.repeat(lambda: convert(source[0]), number=200, repeat=1000)) / 200 * 1e6


def training(steps: int, *, check: bool) -> Callable[[], None]:
    """Returns a warm Estimator that writes nothing, with one `train` call per round."""
    settings: dict[str, Any] = {
        "save_checkpoints_steps": None,
        "save_checkpoints_secs": None,
        "save_summary_steps": None,
        "log_step_count_steps": None,
        "default_hooks": False,
        "check_inputs": check,
    }
    folder = tempfile.mkdtemp(prefix="bench-checks-")
    estimator = ec.Estimator(model_fn(), config=ec.RunConfig(model_dir=folder, tf_random_seed=0, **settings))

    def run() -> None:
        estimator.train(lambda: itertools.repeat(batch()), steps=steps, hooks=[Finished()])

    return run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    checked, unchecked = microseconds(check=True), microseconds(check=False)
    contestants = {name: training(args.steps, check=name == "checked") for name in ("checked", "unchecked")}
    found = compare(contestants, reference="unchecked", rounds=args.rounds)
    cost = f"the check of a batch of {ROWS} x {WIDTH}: {checked:.2f} us, {unchecked:.2f} us where it is switched off"
    table = report(
        "MLP on a stream", found, steps=args.steps, targets={("checked", "unchecked"): 0.95}, rows=ROWS, notes=[cost]
    )
    write(args.json, table)
    return 0 if checked <= WANTED_MICROSECONDS else 1


if __name__ == "__main__":
    raise SystemExit(main())
