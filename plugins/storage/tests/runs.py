"""A run on an object store: trained in two parts, evaluated and used for predictions, as on disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_core.journal import read_lineage
from estimator_core.storage import open_storage


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    weights = ec.get_variable("weights", (3,))
    predictions = features["x"] @ weights
    loss = None if labels is None else jnp.mean((predictions - labels) ** 2)
    return ec.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=optax.adam(0.1))


def batches() -> Iterator[Any]:
    generator = np.random.default_rng(0)
    while True:
        x = generator.normal(size=(8, 3)).astype(np.float32)
        yield {"x": x}, x.sum(1)


def held_out() -> Iterator[Any]:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    yield {"x": x}, x.sum(1)


def estimator(location: str) -> ec.Estimator:
    config = ec.RunConfig(model_dir=location, tf_random_seed=1, save_checkpoints_steps=5, save_summary_steps=5)
    return ec.Estimator(model_fn, config=config)


def check_all_verbs(url: str, directory: str) -> None:
    """Trains in two parts at the URL and in a directory, and compares all results."""
    here, there = estimator(directory), estimator(url)
    for run in (here, there):
        spec = ec.EvalSpec(held_out, steps=None, throttle_secs=0, start_delay_secs=0)
        ec.train_and_evaluate(run, ec.TrainSpec(batches, max_steps=10), spec)
    _forget_working_copies()
    there = estimator(url)
    for run in (here, there):
        run.train(batches, max_steps=20)
    _forget_working_copies()
    there = estimator(url)
    np.testing.assert_array_equal(there.get_variable_value("weights"), here.get_variable_value("weights"))
    assert there.evaluate(held_out) == here.evaluate(held_out)
    np.testing.assert_array_equal(list(there.predict(held_out)), list(here.predict(held_out)))
    np.testing.assert_array_equal(ec.load_variables(url)["weights"], here.get_variable_value("weights"))
    storage = open_storage(url)
    lineage = read_lineage(storage, whole=True)
    assert sorted(lineage.saved) == [0, 5, 10, 15, 20]
    assert [took.step for took in lineage.starts] == [0, 10]
    assert {entry.key for entry in storage.list("eval")} >= {"eval/metrics.jsonl"}


def _forget_working_copies() -> None:
    """Removes the working copies, because a new process has none."""
    from estimator_core import _model_dir

    _model_dir._copies.clear()  # pyright: ignore[reportPrivateUsage]
