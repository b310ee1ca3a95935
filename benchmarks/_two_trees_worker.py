"""One tree's side of `two_trees.py`: runs a round of a workload for each line that it reads, and prints its seconds.

    python _two_trees_worker.py BENCHMARKS_FOLDER WORKLOAD

The workloads come from the scripts of BENCHMARKS_FOLDER, so each tree is measured by its own. The disk workloads are in
this file, because both trees can run them.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any


def numpy_rows(batches: int) -> tuple[dict[str, Any], Any]:
    """Returns rows and labels for a number of batches."""
    from _mlp_model import arrays
    from mlp import BATCH

    return arrays(batches * BATCH)


def mlp_steps(**config: Any) -> Callable[[], object]:
    """Returns 500 steps of a long training."""
    return importlib.import_module("mlp_steps").training(500, **config)


def small_variables() -> Callable[[], object]:
    """Returns 300 steps with 65 variables."""
    module, training = importlib.import_module("small_variables"), importlib.import_module("_long_training")
    return training.LongTraining(module.model_of(32), lambda: module.batches(32, 1), 300)


def hooks_cost() -> Callable[[], object]:
    """Returns a call of 1,000 steps with ten hooks."""
    module = importlib.import_module("hooks_cost")
    return module.training(1000, module.ten_hooks)


def train_and_evaluate(saves: int) -> Callable[[], object]:
    """Returns 3,000 steps with ten evaluations."""
    return importlib.import_module("train_and_evaluate").estimator_run(3000, saves=saves)


def predict(single: bool) -> Callable[[], object]:
    """Returns a prediction of 100,000 rows in batches of 32."""
    from _mlp_model import trained

    return importlib.import_module("predict").estimator_predict(trained(), numpy_rows(3125)[0]["x"], single=single)


def evaluation() -> Callable[[], object]:
    """Returns an evaluation of 2,000 batches with five metrics."""
    from _mlp_model import trained
    from mlp import BATCH

    import estimator_core as ec

    x, y = numpy_rows(2000)
    estimator, source = trained(), ec.inputs.numpy_input_fn(x, y, batch_size=BATCH, shuffle=False)
    return lambda: estimator.evaluate(source)


class OnDisk:
    """A model with one large variable in a new model_dir.

    Args:
        megabytes: the size of its variable, in MB.
        config: the fields of the RunConfig.
    """

    def __init__(self, megabytes: float, **config: Any) -> None:
        self._rows, self._config = int(megabytes * 1e6 / 4 / 128), config
        self._folder = tempfile.mkdtemp()

    def end(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self._folder)

    def estimator(self) -> Any:
        """Returns a new Estimator, in a separate folder."""
        import estimator_core as ec

        config = ec.RunConfig(model_dir=tempfile.mkdtemp(dir=self._folder), tf_random_seed=1, **self._config)
        return ec.Estimator(self._model_fn, config=config)

    def inputs(self, *, epochs: int | None = 1) -> Any:
        """Returns batches of 32 rows: one, or an endless number."""
        import numpy as np

        import estimator_core as ec

        ids = np.arange(32, dtype=np.int32)
        return ec.inputs.numpy_input_fn(
            {"id": ids}, ids.astype(np.float32), batch_size=32, num_epochs=epochs, shuffle=False
        )

    def _model_fn(self, features: Any, labels: Any, mode: str) -> Any:
        import jax.numpy as jnp
        import optax

        import estimator_core as ec

        table = ec.get_variable("table", (self._rows, 128))
        predictions = table[features["id"]].sum(1)
        loss = None if labels is None else jnp.mean((predictions - labels) ** 2)
        return ec.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=optax.sgd(0.01))


class Saves(OnDisk):
    """Runs ten steps with a save of 40 MB after each."""

    def __init__(self) -> None:
        super().__init__(40, save_checkpoints_steps=1, keep_checkpoint_max=2)
        self._trained = self.estimator()

    def __call__(self) -> None:
        self._trained.train(self.inputs(epochs=None), steps=10)


class Restores(OnDisk):
    """Runs eight evaluations of a batch, each of another checkpoint of 40 MB."""

    def __init__(self) -> None:
        super().__init__(40, save_checkpoints_steps=1)
        self._trained = self.estimator().train(self.inputs(epochs=None), steps=3)

    def __call__(self) -> None:
        for _ in range(4):
            for step in (1, 2):
                path = f"{self._trained.model_dir}/checkpoints/{step}"
                self._trained.evaluate(self.inputs(), checkpoint_path=path)


class ShortRuns(OnDisk):
    """Runs three new trainings of 20 steps, each with two checkpoints and two evaluations."""

    def __init__(self) -> None:
        super().__init__(0.1, save_checkpoints_steps=10)

    def __call__(self) -> None:
        import estimator_core as ec

        for _ in range(3):
            train = ec.TrainSpec(self.inputs(epochs=None), max_steps=20)
            ec.train_and_evaluate(self.estimator(), train, ec.EvalSpec(self.inputs(), throttle_secs=0))


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
    "saves": Saves,
    "restores": Restores,
    "short runs": ShortRuns,
}


def main() -> None:
    """Answers until its input ends."""
    folder, workload = sys.argv[1:]
    sys.path[0] = folder
    answers, sys.stdout = sys.stdout, sys.stderr  # the output of a workload is not an answer
    run = WORKLOADS[workload]()
    for _ in sys.stdin:
        began = time.perf_counter()
        run()
        print(time.perf_counter() - began, file=answers, flush=True)
    end: Callable[[], None] = getattr(run, "end", lambda: None)
    end()


if __name__ == "__main__":
    main()
