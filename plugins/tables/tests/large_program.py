"""A table of many rows on several devices, for new processes: the bytes of each device, and the rows it reads.

python large_program.py MODEL_DIR OPTIMIZER STEPS ROWS
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from typing import Any

import jax
import numpy as np
import optax

import estimator_core as ec
from estimator_tables import AllToAll

COLUMNS, BATCH, FIRST, RATE = 8, 4096, 0.5, 0.1
OPTIMIZERS = {"adagrad": optax.adagrad(RATE), "sgd": optax.sgd(RATE)}


def ids(rows: int) -> np.ndarray:
    """Ids from the first row to the last, each once, the same in every step."""
    return np.linspace(0, rows - 1, BATCH).astype(np.int32)


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
    first = jax.nn.initializers.constant(FIRST)
    rows = ec.sparse_lookup("table", features["ids"], (params["rows"], COLUMNS), first, access=AllToAll())
    return ec.EstimatorSpec(mode, loss=ec.tensor("rows", rows).sum(), train_op=OPTIMIZERS[params["optimizer"]])


class Observer(ec.Hook):
    """Reads the rows of the last step, and the bytes of the arrays on the fullest device."""

    def begin(self, run: Any) -> None:
        run.fetch("rows")

    def after_step(self, run: Any, step: int, out: Any) -> None:
        rows = np.asarray(out["rows"])
        self.found = {"step": step, "low": float(rows.min()), "high": float(rows.max()), "bytes": held_bytes()}


def held_bytes() -> int:
    """The bytes of all arrays on the device that has the most."""
    held = dict.fromkeys(jax.devices(), 0)
    for array in jax.live_arrays():
        for device in array.sharding.device_set:
            held[device] += math.prod(array.sharding.shard_shape(array.shape)) * array.dtype.itemsize
    return max(held.values())


def main(model_dir: str, optimizer: str, steps: str, rows: str) -> None:
    began = time.perf_counter()
    saves = 1 if optimizer == "sgd" else None
    config = ec.RunConfig(
        model_dir=model_dir,
        tf_random_seed=1,
        default_hooks=False,
        save_checkpoints_steps=saves,
        full_checkpoint_every=10,
        mesh={"data": len(jax.devices())},
    )
    observer = Observer()
    batch = {"ids": ids(int(rows))}, np.zeros(BATCH, np.float32)
    estimator = ec.Estimator(model_fn, config=config, params={"optimizer": optimizer, "rows": int(rows)})
    estimator.train(lambda: [batch] * 10, max_steps=int(steps), hooks=[observer])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # kilobytes on Linux
    print(json.dumps({**observer.found, "peak": peak, "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main(*sys.argv[1:])
