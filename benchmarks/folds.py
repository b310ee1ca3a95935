"""Cross-validation: folds that one program trains together, against folds that are trained one after another.

    uv run python benchmarks/folds.py [--folds 5] [--steps 5000] [--rounds 5] [--json FILE]

Both sides run `estimator crossval` with one configuration file, with `crossval.way` "auto" and "alone". Every fold
leaves a model_dir with checkpoints, an evaluation and its predictions. A first call of each side fills the compile
cache and does not count. Then the largest difference of a metric of a fold is printed.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from _report import report, write
from _side_by_side import compared
from population import seconds

from estimator_runs import metrics_over_folds, open_folds, run_folds

FILE = """
model = {{ function = "{code}:model_fn" }}
inputs.train = {{ call = "{code}:rows" }}
inputs.eval = {{ call = "{code}:rows" }}
train.max_steps = {steps}
hparams.rate = 0.001
run_config.tf_random_seed = 1
crossval = {{ folds = {folds}, batch_size = 64, way = "{way}" }}
"""
Metrics = dict[str, list[float]]


def validated(way: str, folds: int, steps: int) -> Metrics:
    """Returns the metrics of each fold."""
    code = Path(__file__).with_name("_sweep_code.py")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "folds.toml")
        path.write_text(FILE.format(code=code, folds=folds, steps=steps, way=way))
        found = open_folds(path, Path(folder, "folds"))
        run_folds(found)
        return {name: list(one.values) for name, one in metrics_over_folds(found).items()}


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    logging.getLogger("estimator_core").setLevel(logging.WARNING)
    names = "folds in one program", "folds one after another"
    sides: dict[str, Callable[[], Metrics]] = {
        names[0]: lambda: validated("auto", args.folds, args.steps),
        names[1]: lambda: validated("alone", args.folds, args.steps),
    }
    mine, its = (side() for side in sides.values())
    wall: dict[str, list[float]] = {name: [] for name in sides}
    processors: dict[str, list[float]] = {name: [] for name in sides}
    for index in range(args.rounds):
        for name in sides if index % 2 else reversed(sides):
            passed = seconds(sides[name])
            wall[name].append(passed[0])
            processors[name].append(passed[1])
    found = [
        replace(compared(told, *names, smaller_is_better=True), name=f"{names[0]}{what}")
        for told, what in ((wall, ""), (processors, ", time of processors"))
    ]
    worst = {name: float(np.max(np.abs(np.array(mine[name]) - its[name]))) for name in its}
    note = "largest difference of a metric of a fold: " + ", ".join(f"{name} {one:.1e}" for name, one in worst.items())
    title = f"{args.folds} folds of {args.steps} steps"
    write(args.json, report(title, found, steps=args.folds * args.steps, notes=[note]))


if __name__ == "__main__":
    main()
