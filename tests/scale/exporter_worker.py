"""A run whose exporter evaluates and predicts: `exporter_worker.py SETTINGS_JSON`, with the settings of
`train_worker.py`.

Each process writes the results of its evaluations to `<out>.<process>.json`, and the chief those of its exporter.
"""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import models
import numpy as np
from train_worker import make_estimator

import estimator_core as ec
from estimator_core._loop.resuming import input_context


class Looks(ec.export.Exporter):
    """Evaluates and predicts all examples, like an exporter that checks its export."""

    name = "looks"

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> str:
        metrics = estimator.evaluate(models.eval_input(48), name="by_exporter")
        of_checkpoint = estimator.evaluate(models.eval_input(48), checkpoint_path=checkpoint_path, name="of_checkpoint")
        classes = [int(row["class"]) for row in estimator.predict(models.eval_input(48), predict_keys=["class"])]
        logits = estimator.predictor()({"x": models.data()[0]["x"][:8]})["logits"]
        self.seen.append(
            {
                "step": int(Path(checkpoint_path).name),
                "shared": eval_result,
                "metrics": metrics,
                "of_checkpoint": of_checkpoint,
                "right": float(np.mean(np.array(classes) == models.data()[1])),
                "first": np.argmax(logits, axis=-1).tolist() == classes[:8],
            }
        )
        return checkpoint_path


def main(settings: dict[str, Any]) -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    estimator, exporter = make_estimator(settings), Looks()
    parts = input_context(estimator._devices).num_input_pipelines
    metrics, _ = ec.train_and_evaluate(
        estimator,
        ec.TrainSpec(models.train_input(32 // parts), max_steps=10),
        ec.EvalSpec(models.eval_input(48 // parts), exporters=[exporter], throttle_secs=0, start_delay_secs=0),
    )
    process = estimator._devices.processes.index
    result = {"metrics": metrics, "seen": exporter.seen, "traces": estimator.trace_counts}
    Path(f"{settings['out']}.{process}.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
