"""Requests of the first process alone: `chief_worker.py OUT`. It writes its observations to `<out>.<process>.json`.

In training, a chief hook of the model_fn requests control at its own steps, a value that no other process reads, and a
stop. In the evaluation, a hook fetches and follows values only in the first process.
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax
import models
import numpy as np
import optax

import estimator_core as ec

SEEN: list[Any] = []


class Chief(ec.Hook):
    """Requests control at every third step and with other hooks, and stops the run at the ninth step."""

    def begin(self, run: Any) -> None:
        run.fetch("hidden")
        run.follow("loss")

    def next_step(self, step: int) -> ec.Wake:
        return ec.Wake(step=(step // 3 + 1) * 3, joins=True)

    def after_step(self, run: Any, step: int, out: Any) -> None:
        SEEN.append([step, list(np.shape(out["hidden"]))])
        if step >= 9:
            run.request_stop("the chief has enough")

    def on_values(self, run: Any, steps: range, values: Any) -> None:
        SEEN.append([len(steps), list(values["loss"].shape)])


class Every(ec.Hook):
    """Requests control at every fifth step in each process."""

    def next_step(self, step: int) -> int:
        return (step // 5 + 1) * 5


class Looks(ec.Hook):
    """Fetches one output and follows another, only in the first process."""

    def begin(self, run: Any) -> None:
        if jax.process_index() == 0:
            run.fetch("hidden")
            run.follow("norm")

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if jax.process_index() == 0:
            SEEN.append([step, list(np.shape(out["hidden"]))])

    def on_values(self, run: Any, steps: range, values: Any) -> None:
        SEEN.append([len(steps), list(values["norm"].shape)])


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """A model of one layer whose rows are split over the processes."""
    kernel = ec.get_variable("kernel", (features["x"].shape[1], 4), jax.nn.initializers.normal(0.1))
    hidden = jax.numpy.tanh(features["x"] @ kernel)
    return ec.EstimatorSpec(
        mode,
        predictions={"hidden": hidden, "norm": jax.numpy.linalg.norm(hidden)},
        loss=None if labels is None else ((hidden.sum(axis=1) - labels) ** 2).mean(),
        train_op=optax.sgd(0.01),
        training_chief_hooks=[Chief()],
    )


def main(out: str) -> None:
    config = ec.RunConfig(model_dir=f"{out}_dir", tf_random_seed=1, steps_per_dispatch=4)
    estimator = ec.Estimator(model_fn, config=config)
    estimator.train(models.train_input(16), max_steps=30, hooks=[Every()])
    trained, SEEN[:] = list(SEEN), []
    metrics = estimator.evaluate(models.eval_input(16), steps=2, hooks=[Looks()])
    seen = {"reason": estimator.stop_reason, "loss": metrics["loss"], "trained": trained, "evaluated": SEEN}
    Path(f"{out}.{jax.process_index()}.json").write_text(
        json.dumps(seen | {"step": metrics["global_step"]}, default=float)
    )


if __name__ == "__main__":
    main(sys.argv[1])
