"""Processes whose calls differ: `calls_worker.py MODEL_DIR WHAT`. Their calls depend on JAX_PROCESS_ID."""

import os
import sys
from pathlib import Path

import models

import estimator_core as ec


class _Predicts(ec.Hook):
    """Takes some predictions of another Estimator after step 3."""

    def __init__(self, estimator: ec.Estimator, count: int) -> None:
        self._other, self._count = ec.Estimator(models.classifier, config=estimator.config, params={"width": 8}), count

    def next_step(self, step: int) -> int:
        return 3 if step < 3 else 1000

    def after_step(self, run: object, step: int, out: object) -> None:
        for number, _ in enumerate(self._other.predict(models.eval_input(16))):
            if number == self._count:
                break


def main(model_dir: str, what: str) -> None:
    config = ec.RunConfig(model_dir=model_dir, tf_random_seed=1, save_checkpoints_steps=2)
    second = os.environ["JAX_PROCESS_ID"] == "1"
    if what == "accumulation" and second:
        config = config.replace(accumulate_steps=2)
    rate = {"learning_rate": 3e-2} if what == "rates" and second else {}
    estimator = ec.Estimator(models.classifier, config=config, params={"width": 8, **rate})
    if what in ("accumulation", "rates"):
        estimator.train(models.train_input(16), steps=2)
    elif what == "steps":
        estimator.train(models.train_input(16), steps=3 if second else 2)
    elif what == "hooks":
        estimator.train(models.train_input(16), steps=2, hooks=[ec.Hook()] if second else [])
    elif what == "verbs" and second:
        estimator.evaluate(models.eval_input(16), steps=1)
    elif what == "verbs":
        list(estimator.predict(models.eval_input(16)))
    elif what == "predictions":  # the second process takes few of them and ends
        estimator.train(models.train_input(16), steps=2)
        for number, _ in enumerate(estimator.predict(models.eval_input(16))):
            if second and number == 4:
                break
    elif what.startswith("predictions in a hook"):  # the second process takes few of them, the first all or some
        estimator.train(models.train_input(16), steps=2)
        mine = 4 if second else 40 if what.endswith("both") else 1000
        estimator.train(models.train_input(16), steps=4, hooks=[_Predicts(estimator, mine)])
    elif what.startswith("predictions then evaluate"):  # the second process takes few of them, the first all or some
        estimator.train(models.train_input(16), steps=2)
        predictions = estimator.predict(models.eval_input(16))
        for number, _ in enumerate(predictions):
            if number == (4 if second else 40) and (second or what.endswith("both")):
                break
        estimator.evaluate(models.eval_input(16), steps=1)
    else:  # "ended": the second process makes no further call
        estimator.train(models.train_input(16), steps=2)
        if not second:
            estimator.evaluate(models.eval_input(16), steps=1)
    Path(model_dir, f"done.{second:d}").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
