"""One process of a run whose numbers are compared: `numbers_worker.py SETTINGS_JSON`. It writes `<out>.<process>.npz`.

Settings: model_dir, out, mesh, max_steps, ragged, config. It trains with dropout in shuffled order, evaluates, and
predicts twice. The second time, `is_real_example` of the input marks the rows that count. It records the examples of
each step.
"""

import dataclasses
import json
import logging
import sys
from typing import Any

import models
import numpy as np

import estimator_core as ec
from estimator_core._loop.device_state import whole_on_host
from estimator_core._loop.resuming import input_context


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
    """The classifier, which also returns the number of the example of every row."""
    spec = models.classifier(features, labels, mode, params)
    ec.tensor("number", features["number"])
    return dataclasses.replace(spec, predictions={**spec.predictions, "number": features["number"]})


class Notes(ec.Hook):
    """Records the loss and the examples of every step."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.numbers: list[list[int]] = []

    def begin(self, run: ec.Run) -> None:
        run.fetch("number")

    def next_step(self, step: int) -> int:
        return step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.losses.append(float(out["loss"]))
        self.numbers.append(np.asarray(out["number"]).tolist())


#: The examples of a global batch, of the training input and of the evaluation input. Two epochs of training leave a
#: rest of 6, and the evaluation one of 5.
BATCH, TRAINED, EVALUATED = 24, 51, 53


def arrays(examples: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Returns examples with their numbers."""
    x, y = models.data(examples)
    return {**x, "number": np.arange(examples, dtype=np.int32)}, y


def main(settings: dict[str, Any]) -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    logging.getLogger("estimator_core").setLevel(logging.INFO)
    config = ec.RunConfig(
        model_dir=settings["model_dir"],
        mesh=settings.get("mesh"),
        **{"tf_random_seed": 1, "log_step_count_steps": None, "save_summary_steps": None} | settings.get("config", {}),
    )
    estimator = ec.Estimator(model_fn, config=config, params={"width": 32, "dropout": True})
    devices_of = estimator._devices
    size = BATCH // input_context(devices_of).num_input_pipelines
    notes, ragged = Notes(), settings.get("ragged", "exact")
    x, y = arrays(TRAINED)
    train_input = ec.inputs.numpy_input_fn(x, y, size, num_epochs=2, shuffle=True, seed=3, ragged=ragged)
    estimator.train(train_input, hooks=[notes], max_steps=settings.get("max_steps"))
    x, y = arrays(EVALUATED)
    metrics = estimator.evaluate(ec.inputs.numpy_input_fn(x, y, size, shuffle=False, ragged=ragged))
    rows = list(estimator.predict(ec.inputs.numpy_input_fn(x, None, size, shuffle=False, ragged=ragged)))
    x["is_real_example"] = (x["number"] % 5 != 4).astype(np.float32)
    marked = estimator.predict(ec.inputs.numpy_input_fn(x, None, size, shuffle=False), predict_keys=["number"])
    state = estimator._state.ready
    np.savez(
        f"{settings['out']}.{devices_of.processes.index}.npz",
        **{f"variable/{n}": whole_on_host(v) for n, v in {**state.variables, **state.model_state}.items()},
        losses=np.array(notes.losses),
        numbers=np.concatenate(notes.numbers),
        sizes=np.array([len(numbers) for numbers in notes.numbers]),
        metrics=np.array([metrics["accuracy"], metrics["per_example"], metrics["loss"]]),
        predicted=np.array([row["number"] for row in rows]),
        marked=np.array([row["number"] for row in marked]),
        logits=np.array([row["logits"] for row in rows]),
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
