"""A model with a growing table, for new processes with one or several devices.

python growing_program.py MODEL_DIR STEPS [KILLED_AT]
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from own_process import Killed

import estimator_core as ec
from estimator_tables import GrowingTable, WideIds

USERS = GrowingTable(rows=64, columns=4, admit_at=2, max_age=2)


def batches(steps: int) -> list[Any]:
    """Ids that appear and disappear. The table has room for only some of them."""
    rng = np.random.default_rng(5)
    return [
        (
            {"user": rng.integers(2**40 + step * 25, 2**40 + step * 25 + 60, (32, 3))},
            rng.normal(size=32).astype(np.float32),
        )
        for step in range(steps)
    ]


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    rows = USERS.lookup("user", features["user"], mode)
    y = rows.sum(axis=(1, 2)) + ec.get_variable("bias", ())
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.adagrad(0.1))


def input_fn(steps: int) -> Any:
    return lambda: batches(steps)


def estimator_in(model_dir: str) -> ec.Estimator:
    config = ec.RunConfig(
        model_dir=model_dir,
        tf_random_seed=1,
        default_hooks=False,
        save_checkpoints_steps=3,
        mesh={"data": len(jax.devices())},
    )
    return ec.Estimator(model_fn, config=config, host_transforms=[WideIds(["user"])])


if __name__ == "__main__":
    hooks = [Killed(int(sys.argv[3]))] if len(sys.argv) > 3 else []
    estimator_in(sys.argv[1]).train(input_fn(8), max_steps=int(sys.argv[2]), hooks=hooks)
