"""Hooks that act differently in each process: `hooks_worker.py OUT WHAT`. It writes to `<out>.<process>.json`.

"stops": one process requests a stop, in training at a step with a save, then in an evaluation and in predictions. Then
a listener requests one in training, and a hook that never has control in predictions. "quiet": only one process shows
no progress. "steps": each process requests control at different steps. "assigns": only the first process replaces
variables.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import jax
import models

import estimator_core as ec
from estimator_core.hooks import CheckpointListener


class Stops(ec.Hook):
    """Requests a stop in only one process."""

    def __init__(self, process: int, step: int) -> None:
        self.process, self.step = process, step

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if step == self.step and jax.process_index() == self.process:
            run.request_stop(f"process {self.process} has enough")


class Follows(ec.Hook):
    """Requests a stop in only one process, because of a value that it follows at each step."""

    def begin(self, run: Any) -> None:
        if jax.process_index() == 1:
            run.follow("loss")

    def next_step(self, step: int) -> int:
        return step + 3

    def on_values(self, run: Any, steps: range, values: Any) -> None:
        run.request_stop("a value")


class Sees(ec.Hook):
    """Requests a stop because of a value in only one process, and never has control."""

    def begin(self, run: Any) -> None:
        if jax.process_index() == 1:
            run.follow("class")

    def next_step(self, step: int) -> None:
        return None

    def on_values(self, run: Any, steps: range, values: Any) -> None:
        run.request_stop("a class")


class Listens(CheckpointListener):
    """Requests a stop after a save, in only one process."""

    def after_save(self, run: Any, step: int, checkpoint: Any) -> bool:
        return jax.process_index() == 1


class Steps(ec.Hook):
    """Requests control at different steps in each process."""

    def next_step(self, step: int) -> int:
        return step + 2 + jax.process_index()


class Assigns(ec.Hook):
    """Replaces variables in only the first process."""

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if step == 3 and jax.process_index() == 0:
            run.assign({name: 0 * value for name, value in run.variables().items()})


def main(out: str, what: str) -> None:
    config = ec.RunConfig(model_dir=f"{out}_dir", save_checkpoints_steps=5, save_summary_steps=None)
    estimator = ec.Estimator(models.classifier, config=config, params={"width": 8})
    if what == "quiet":
        os.environ["ESTIMATOR_QUIET"] = os.environ["JAX_PROCESS_ID"]
        estimator.train(models.train_input(16), max_steps=20)
        print(estimator.evaluate(models.eval_input(16), steps=3)["global_step"])
        return
    if what != "stops":
        estimator.train(models.train_input(16), max_steps=20, hooks=[Steps() if what == "steps" else Assigns()])
        return
    specs = ec.TrainSpec(models.train_input(16), max_steps=20, hooks=[Stops(1, 5)]), ec.EvalSpec(models.eval_input(16))
    ec.train_and_evaluate(estimator, *specs)
    trained = estimator.stop_reason
    accuracy = estimator.evaluate(models.eval_input(16), hooks=[Stops(0, 2)])["accuracy"]
    predicted = len(list(estimator.predict(models.eval_input(16), hooks=[Stops(1, 2)])))
    estimator.train(models.train_input(16), steps=20, hooks=[Follows()])
    done = [trained, accuracy, predicted, estimator.stop_reason, Path(estimator.latest_checkpoint() or "").name]
    estimator.train(models.train_input(16), steps=20, saving_listeners=[Listens()])
    seen = len(list(estimator.predict(models.eval_input(16, 16000), hooks=[Sees()])))
    done += [estimator.stop_reason, seen]
    Path(f"{out}.{jax.process_index()}.json").write_text(json.dumps(done, default=float))


if __name__ == "__main__":
    main(*sys.argv[1:])
