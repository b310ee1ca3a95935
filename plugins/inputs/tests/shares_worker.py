"""One process of a run whose shares of the rows are unequal: `shares_worker.py PATTERN SHARD_BY BATCH FOLDER STOP`.

STOP is the step after which a signal stops the run. With 0, the run is not stopped.
"""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_inputs import csv_input_fn

ROWS = 101


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """A model with a weight for each row. Every use of the row decreases it by one."""
    rows = features["id"]
    uses = ec.get_variable("uses", (ROWS,), lambda key, shape, dtype: jnp.zeros(shape, dtype))
    metrics = {"id": ec.metrics.mean(rows), "square": ec.metrics.mean(rows.astype(jnp.float32) ** 2)}
    return ec.EstimatorSpec(mode, loss=jnp.sum(uses[rows]), train_op=optax.sgd(1.0), eval_metric_ops=metrics)


class StopHook(ec.Hook):
    """Sends this process the signal of a platform that ends the process."""

    def __init__(self, step: int) -> None:
        self.step = step

    def next_step(self, step: int) -> int | None:
        """Returns the step, once."""
        return self.step if step < self.step else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        """Sends the signal."""
        os.kill(os.getpid(), signal.SIGTERM)


def main(pattern: str, shard_by: Any, batch_size: int, folder: Path, stop: int) -> None:
    config = ec.RunConfig(model_dir=str(folder / "run"), tf_random_seed=1, save_summary_steps=None)
    estimator = ec.Estimator(model_fn, config=config)
    common: dict[str, Any] = {"shard_by": shard_by, "select_columns": ["id"]}
    train_input_fn = csv_input_fn(pattern, batch_size, shuffle=True, num_epochs=2, **common)
    if stop:
        with contextlib.suppress(ec.errors.PreemptedError):
            estimator.train(train_input_fn, hooks=[StopHook(stop)])
        return
    estimator.train(train_input_fn)
    metrics = estimator.evaluate(csv_input_fn(pattern, batch_size, shuffle=False, **common))
    seen = {
        "uses": np.asarray(estimator.get_variable_value("uses")).tolist(),
        "metrics": {name: float(value) for name, value in metrics.items()},
    }
    (folder / f"seen.{estimator._devices.processes.index}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5]))
