"""A model with a table in the memory of the host, with and without a cache of rows on the device.

    python cached_program.py MODEL_DIR CACHED_ROWS STEPS [KILLED_AT]

It trains up to step STEPS on all devices.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from own_process import Killed

import estimator_core as ec
from estimator_tables import AllToAll, GrowingTable, WideIds

ROWS, COLUMNS, BATCH = 640, 4, 100
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: optax.sgd(0.1),
    "adagrad": lambda: optax.adagrad(0.1),
    "adam": lambda: optax.adam(0.05),
}


def batches(steps: int) -> list[Any]:
    """Frequent and rare ids, repeated, missing and out of range. Every fifth batch has only rare ids."""
    rng = np.random.default_rng(3)
    made: list[Any] = []
    for step in range(steps):
        ids = np.minimum(rng.zipf(1.2, (BATCH, 3)) - 1, ROWS - 1).astype(np.int32)
        if step % 5 == 4:
            ids = rng.integers(0, ROWS, ids.shape).astype(np.int32)
        ids[rng.random(ids.shape) < 0.1] = -1
        ids[0] = ROWS, -2, -1
        made.append(({"ids": ids}, rng.normal(size=BATCH).astype(np.float32)))
    return made


def estimator_in(model_dir: str, cached_rows: int, optimizer: str = "adam", **settings: Any) -> ec.Estimator:
    """The estimator of the model, on all devices."""
    access = AllToAll(memory="pinned_host", cached_rows=cached_rows)

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        normal = jax.nn.initializers.normal(0.5)
        rows = ec.sparse_lookup("table", features["ids"], (ROWS, COLUMNS), normal, access=access)
        y = rows.sum(axis=1) @ ec.get_variable("kernel", (COLUMNS,), jax.nn.initializers.ones)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"y": y})
        loss = jnp.mean((y - labels) ** 2)
        return ec.EstimatorSpec(mode, loss=loss, train_op=OPTIMIZERS[optimizer]())

    return ec.Estimator(model_fn, config=_config(model_dir, **settings))


def growing_in(model_dir: str, cached_rows: int) -> ec.Estimator:
    """The same with a growing vocabulary."""
    access = AllToAll(memory="pinned_host", cached_rows=cached_rows)
    users = GrowingTable(rows=128, columns=COLUMNS, admit_at=2, max_age=2, access=access)

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        y = users.lookup("user", features["user"], mode).sum(axis=(1, 2)) + ec.get_variable("bias", ())
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.adagrad(0.1))

    return ec.Estimator(model_fn, config=_config(model_dir), host_transforms=[WideIds(["user"])])


def _config(model_dir: str, **settings: Any) -> ec.RunConfig:
    mesh = {"data": len(jax.devices())}
    return ec.RunConfig(model_dir=model_dir, tf_random_seed=1, default_hooks=False, mesh=mesh, **settings)


def input_fn(steps: int) -> Callable[[], list[Any]]:
    """The input of `train`, which starts at the step where it stopped."""
    return lambda: batches(steps)


if __name__ == "__main__":
    model_dir, cached_rows, steps, *killed = sys.argv[1:]
    estimator_in(model_dir, int(cached_rows), save_checkpoints_steps=10, full_checkpoint_every=4).train(
        input_fn(100), max_steps=int(steps), hooks=[Killed(int(at)) for at in killed]
    )
