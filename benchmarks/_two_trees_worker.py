"""One tree's side of `two_trees.py`: makes a round of a workload for each line that it reads, and prints its seconds.

    python _two_trees_worker.py BENCHMARKS_FOLDER WORKLOAD

The workloads come from the scripts of BENCHMARKS_FOLDER, so that each tree is measured by its own.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any


def numpy_rows(batches: int) -> tuple[dict[str, Any], Any]:
    """Rows and labels of so many batches."""
    from _mlp_model import arrays
    from mlp import BATCH

    return arrays(batches * BATCH)


def mlp_steps(**config: Any) -> Callable[[], object]:
    """500 steps of a long training."""
    return importlib.import_module("mlp_steps").training(500, **config)


def small_variables() -> Callable[[], object]:
    """300 steps with 65 variables."""
    module, training = importlib.import_module("small_variables"), importlib.import_module("_long_training")
    return training.LongTraining(module.model_of(32), lambda: module.batches(32, 1), 300)


def hooks_cost() -> Callable[[], object]:
    """A call of 1,000 steps with ten hooks."""
    module = importlib.import_module("hooks_cost")
    return module.training(1000, module.ten_hooks)


def train_and_evaluate(saves: int) -> Callable[[], object]:
    """3,000 steps with ten evaluations."""
    return importlib.import_module("train_and_evaluate").estimator_run(3000, saves=saves)


def predict(single: bool) -> Callable[[], object]:
    """100,000 rows in batches of 32."""
    from _mlp_model import trained

    return importlib.import_module("predict").estimator_predict(trained(), numpy_rows(3125)[0]["x"], single=single)


def evaluation() -> Callable[[], object]:
    """2,000 batches, five metrics."""
    from _mlp_model import trained
    from mlp import BATCH

    import estimator_core as ec

    x, y = numpy_rows(2000)
    estimator, source = trained(), ec.inputs.numpy_input_fn(x, y, batch_size=BATCH, shuffle=False)
    return lambda: estimator.evaluate(source)


WORKLOADS: dict[str, Callable[[], Callable[[], object]]] = {
    "mlp_steps": mlp_steps,
    "mlp_steps, no hooks": lambda: mlp_steps(default_hooks=False, log_step_count_steps=None, save_summary_steps=None),
    "mlp_steps, 20 a dispatch": lambda: mlp_steps(steps_per_dispatch=20),
    "small_variables": small_variables,
    "hooks_cost": hooks_cost,
    "train_and_evaluate": lambda: train_and_evaluate(1),
    "train_and_evaluate, ten checkpoints": lambda: train_and_evaluate(10),
    "predict, whole batches": lambda: predict(False),
    "predict, single examples": lambda: predict(True),
    "evaluation": evaluation,
}


def main() -> None:
    """Answers until its input ends."""
    folder, workload = sys.argv[1:]
    sys.path[0] = folder
    answers, sys.stdout = sys.stdout, sys.stderr  # what a workload prints is not an answer
    run = WORKLOADS[workload]()
    for _ in sys.stdin:
        began = time.perf_counter()
        run()
        print(time.perf_counter() - began, file=answers, flush=True)
    end: Callable[[], None] = getattr(run, "end", lambda: None)
    end()


if __name__ == "__main__":
    main()
