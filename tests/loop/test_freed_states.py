"""Tests that no call keeps a state in memory that nothing uses any more."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._checkpoint import orbax_io
from estimator_core._loop import inference_state

SHAPE = (37, 3)  # of no other array


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    y = (features["x"] @ ec.get_variable("w", SHAPE)).sum(-1)
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    return ec.EstimatorSpec(mode, predictions={"y": y}, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.01))


def batches() -> Any:
    return ec.inputs.numpy_input_fn(
        {"x": np.ones((8, SHAPE[0]), np.float32)}, np.ones(8, np.float32), batch_size=4, num_epochs=1, shuffle=False
    )


def states() -> int:
    """Returns the number of states on the device."""
    gc.collect()
    return sum(array.shape == SHAPE for array in jax.live_arrays())


class AtStep(ec.Hook):
    """Calls a function after a step."""

    def __init__(self, step: int, act: Any) -> None:
        self.step, self.act = step, act

    def next_step(self, step: int) -> int | None:
        return self.step if step < self.step else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.act()


@pytest.fixture
def make(tmp_path: Path) -> Any:
    config = ec.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=2, default_hooks=False)
    return lambda: ec.Estimator(model_fn, config=config)


def test_a_restored_run_does_not_keep_the_arrays_that_were_read(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make().train(batches(), max_steps=2)
    read: list[weakref.ref[np.ndarray]] = []

    def noted(*args: Any, original: Any = orbax_io.read_arrays) -> Any:
        found = original(*args)
        read.extend(weakref.ref(array) for item in ("variables", "opt_state") for array in found.get(item, {}).values())
        return found

    monkeypatch.setattr(orbax_io, "read_arrays", noted)
    alive: list[int] = []

    def look() -> None:
        gc.collect()
        alive.append(sum(ref() is not None for ref in read))

    # The first step may consume the memory of a host array, which the device has taken.
    make().train(batches(), max_steps=4, hooks=[AtStep(4, look)])
    assert read
    assert alive == [0]


def test_training_does_not_keep_the_state_of_an_evaluated_checkpoint(make: Any) -> None:
    make().train(batches(), max_steps=2)
    before = states()
    estimator = make()
    estimator.evaluate(batches())
    assert states() == before + 1
    held: list[int] = []
    estimator.train(batches(), max_steps=4, hooks=[AtStep(4, lambda: held.append(states()))])
    assert held == [before + 1]


def test_one_checkpoint_is_dropped_before_another_is_read(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make().train(batches(), max_steps=2).latest_checkpoint()
    make().train(batches(), max_steps=4)
    before, estimator, held = states(), make(), list[int]()

    def noted(*args: Any, original: Any = inference_state.open_checkpoint, **kwargs: Any) -> Any:
        held.append(states())
        return original(*args, **kwargs)

    estimator.evaluate(batches())
    monkeypatch.setattr(inference_state, "open_checkpoint", noted)
    estimator.evaluate(batches(), checkpoint_path=path)
    assert held == [before]
    assert states() == before + 1


def test_a_dropped_estimator_frees_its_state(make: Any, tmp_path: Path) -> None:
    before = states()
    estimator = make()
    estimator.train(batches(), max_steps=2)
    list(estimator.predict(batches()))
    assert states() > before
    del estimator
    assert states() == before
