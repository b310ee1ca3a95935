"""Tests that memory, files and threads do not grow over many steps, evaluations, checkpoints and predictions."""

from __future__ import annotations

import gc
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec

STEPS, EVERY = int(os.environ.get("FLAT_STEPS", "20000")), 100
MEGABYTES = 12


@dataclass(frozen=True)
class Held:
    """The resources of the process: resident memory in MB, open files, threads, and arrays on the device."""

    memory: float
    files: int
    threads: int
    arrays: int


def held() -> Held:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    memory = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return Held(memory, len(os.listdir("/proc/self/fd")), threading.active_count(), len(jax.live_arrays()))


class Watch(ec.Hook):
    """Measures the resources of the process twenty times."""

    def __init__(self) -> None:
        self.seen: list[Held] = []

    def next_step(self, step: int) -> int | None:
        every = STEPS // 20
        return (step // every + 1) * every

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.seen.append(held())


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    hidden = jnp.tanh(features["x"] @ ec.get_variable("w", (3, 64), jax.nn.initializers.normal()))
    y = hidden @ ec.get_variable("v", (64,), jax.nn.initializers.normal())
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    return ec.EstimatorSpec(
        mode,
        loss=jnp.mean((y - labels) ** 2),
        train_op=optax.adam(0.01),
        eval_metric_ops={"mean": ec.metrics.mean(y)},
    )


def check_flat(seen: list[Held]) -> None:
    """Checks that the second half uses no more than the end of the first quarter."""
    settled, late = seen[len(seen) // 4], seen[len(seen) // 2 :]
    print(f"at a quarter: {settled}; at the end: {seen[-1]}; highest: {max(one.memory for one in seen):.1f} MB")
    assert max(one.memory for one in late) < settled.memory + MEGABYTES
    # A checkpoint or a batch may be in progress at a measurement.
    assert min(one.files for one in late) <= settled.files
    assert min(one.threads for one in late) <= settled.threads
    assert min(one.arrays for one in late) <= settled.arrays


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_nothing_grows(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(256, 3)).astype(np.float32)
    data = ({"x": x}, x.sum(axis=1))
    train_input = ec.inputs.numpy_input_fn(*data, batch_size=32, num_epochs=None, shuffle=True, seed=1)
    eval_input = ec.inputs.numpy_input_fn(*data, batch_size=64, num_epochs=1, shuffle=False)
    config = ec.RunConfig(
        model_dir=str(tmp_path), tf_random_seed=1, save_checkpoints_steps=EVERY, keep_checkpoint_max=2, prefetch=2
    )
    estimator, watch = ec.Estimator(model_fn, config=config), Watch()
    spec = ec.TrainSpec(train_input, max_steps=STEPS, hooks=[watch])
    ec.train_and_evaluate(estimator, spec, ec.EvalSpec(eval_input))
    assert len(ec.read_eval_metrics(estimator.eval_dir())) == STEPS // EVERY
    check_flat(watch.seen)
    predicting: list[Held] = []
    for _ in range(20):
        for _ in range(STEPS // EVERY // 20):
            assert len(list(estimator.predict(eval_input))) == 256
        predicting.append(held())
    check_flat(predicting)
