"""Tests of the host memory that exports need."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
import estimator_signatures

MIB = 1024 * 1024


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    rows: Any = sum(ec.get_variable(f"w{number}", (2, MIB // 2)).sum() for number in range(8))  # 4 MiB each
    y = features["x"] + rows
    return ec.EstimatorSpec(mode, predictions={"y": y}, loss=y.mean(), train_op=optax.sgd(0.1))


def peak(act: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def exported(folder: Path) -> tuple[str, Callable[[], str]]:
    """Returns the path of an export with 32 MiB of weights, and a function that writes another one."""
    x = {"x": np.ones(4, np.float32)}
    estimator = ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(folder / "run"), default_hooks=False))
    estimator.train(ec.inputs.numpy_input_fn(x, x["x"], batch_size=4, num_epochs=1, shuffle=False))
    receiver = ec.export.build_raw_serving_input_receiver_fn(x)

    def again() -> str:
        return estimator.export_saved_model(str(folder / "exports"), receiver)

    return again(), again


def test_the_writer_of_an_export_does_not_copy_the_weights(tmp_path: Path) -> None:
    path, again = exported(tmp_path)  # the first one imports and compiles
    assert peak(again) < 2.5 * 32 * MIB  # the request, and what a CPU device takes over in the check
    assert (Path(path) / "variables.safetensors").stat().st_mode == (Path(path) / "manifest.json").stat().st_mode


def test_a_loaded_export_needs_one_array_on_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = exported(tmp_path)
    # A CPU device may use the memory of the host array. This one never does.
    monkeypatch.setattr(jax, "device_put", lambda value: jnp.zeros(value.shape, value.dtype))
    assert peak(lambda: estimator_signatures.load(path)) < 0.5 * 32 * MIB
