"""A trainer or the evaluator of a TF_CONFIG cluster: `roles_worker.py MODEL_DIR MAX_STEPS STOP_AT`."""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import models

import estimator_core as ec


class Record(ec.export.Exporter):
    """Records the arguments of its calls."""

    name = "record"

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> str:
        with (Path(estimator.model_dir) / "exports.jsonl").open("a") as file:
            variables = estimator.variables
            file.write(json.dumps([Path(checkpoint_path).name, is_the_final_export, len(variables)]) + "\n")
        return checkpoint_path


class StopAt(ec.Hook):
    """Requests a stop at a step, like early stopping."""

    def __init__(self, step: int) -> None:
        self._step = step

    def next_step(self, step: int) -> int | None:
        return self._step if step < self._step else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        run.request_stop("early")


def main(model_dir: str, max_steps: int, stop_at: int) -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    logging.getLogger("estimator_core").setLevel(logging.INFO)
    config = ec.RunConfig(model_dir=model_dir, tf_random_seed=1, save_checkpoints_steps=10, keep_checkpoint_max=None)
    estimator = ec.Estimator(models.classifier, config=config, params={"width": 16})
    train = ec.TrainSpec(models.train_input(16), max_steps=max_steps, hooks=[StopAt(stop_at)])
    evaluation = ec.EvalSpec(models.eval_input(64), exporters=[Record()], start_delay_secs=0, throttle_secs=0)
    metrics, _ = ec.train_and_evaluate(estimator, train, evaluation)
    print(json.dumps({"role": config.task_type, "metrics": metrics}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
