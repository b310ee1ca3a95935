"""Tests of exceptions anywhere in a run: the right error is raised, no thread or lock remains, and the next run
continues.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec


class Broken(RuntimeError):
    """The exception that the tests raise."""


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    y = features["x"] @ ec.get_variable("w", (3,), jax.nn.initializers.normal())
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.01))


def raise_at(owner: type, name: str, calls: int = 1) -> Any:
    """Returns an instance of a class whose method raises at call number `calls`."""
    count = [0]
    real = getattr(owner, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        count[0] += 1
        if count[0] == calls:
            raise Broken(f"in {name}")
        return real(self, *args, **kwargs)

    return type(f"Broken{owner.__name__}", (owner,), {name: method})()


class EveryStep(ec.Hook):
    """A hook that requests every step and its loss, and keeps a state."""

    def next_step(self, step: int) -> int | None:
        return step + 1

    def begin(self, run: Any) -> None:
        run.follow("loss")

    def state(self) -> dict[str, Any]:
        return {"some": 1}


class Nothing(ec.export.Exporter):
    """An exporter that writes nothing."""

    name = "nothing"

    def export(self, *args: Any) -> None:
        return None


def batches(bad: int | None = None) -> Callable[[], Any]:
    """An input of 30 batches that raises instead of the one with this number."""
    x = np.linspace(0, 1, 24, dtype=np.float32).reshape(8, 3)

    def draw() -> Any:
        for number in range(30):
            if number == bad:
                raise Broken("in the iterator")
            yield {"x": x}, x[:, 0]

    return lambda: draw()


def broken_input() -> Any:
    raise Broken("in input_fn")


def hook(name: str, calls: int = 1) -> dict[str, Any]:
    return {"train": {"hooks": [raise_at(EveryStep, name, calls)]}}


def listener(name: str, calls: int = 1) -> dict[str, Any]:
    return {"train": {"saving_listeners": [raise_at(ec.CheckpointListener, name, calls)]}}


#: The fault, and the arguments of TrainSpec, EvalSpec and RunConfig that cause it.
FAULTS: dict[str, dict[str, Any]] = {
    "input_fn": {"input": broken_input},
    "first batch": {"input": batches(0)},
    "batch 7": {"input": batches(7)},
    "first batch in a thread": {"input": batches(0), "config": {"prefetch": 3}},
    "batch 7 in a thread": {"input": batches(7), "config": {"prefetch": 3}},
    "batch 1 of an evaluation": {"eval": {"input_fn": batches(1)}},
    "batch 1 of an evaluation in a thread": {"eval": {"input_fn": batches(1)}, "config": {"prefetch": 3}},
    "hook of an evaluation": {"eval": {"hooks": [raise_at(EveryStep, "after_step", 2)]}},
    "exporter": {"eval": {"exporters": [raise_at(Nothing, "export")]}},
    "exporter, the second time": {"eval": {"exporters": [raise_at(Nothing, "export", 2)]}},
    **{f"hook.{name}": hook(name) for name in ("begin", "after_create", "before_step", "after_step")},
    **{f"hook.{name}": hook(name) for name in ("next_step", "on_values", "before_last_save", "end")},
    "hook.state": hook("state"),
    "hook.state, the second time": hook("state", 2),
    **{f"listener.{name}": listener(name) for name in ("begin", "before_save", "after_save", "end")},
    "listener.after_save, the second time": listener("after_save", 2),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_run_fails_cleanly_and_the_next_one_goes_on(tmp_path: Path, fault: str) -> None:
    given = FAULTS[fault]
    config = {"prefetch": 0, "default_hooks": False, "save_checkpoints_steps": 5, **given.get("config", {})}

    def run(train: dict[str, Any], evaluation: dict[str, Any], input_fn: Any) -> ec.Estimator:
        estimator = ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(tmp_path), tf_random_seed=1, **config))
        ec.train_and_evaluate(
            estimator,
            ec.TrainSpec(input_fn, max_steps=10, **train),
            ec.EvalSpec(**{"input_fn": batches(), "steps": 3, **evaluation}),
        )
        return estimator

    before = set(threading.enumerate())
    with pytest.raises(Exception) as raised:  # noqa: PT011 - which class, each contract says; here it is the message
        run(given.get("train", {}), given.get("eval", {}), given.get("input", batches()))
    assert any(isinstance(error, Broken) for error in chain(raised.value)), raised.value
    assert set(threading.enumerate()) <= before
    assert not (tmp_path / "run.lock").exists() or not held(tmp_path)
    again = run({}, {}, batches())
    assert ec.latest_checkpoint(str(tmp_path)).endswith("/10")
    assert ec.read_eval_metrics(again.eval_dir())
    assert set(threading.enumerate()) <= before


def chain(error: BaseException | None) -> list[BaseException]:
    """Returns an error and its causes."""
    return [] if error is None else [error, *chain(error.__cause__ or error.__context__)]


def held(model_dir: Path) -> bool:
    """Returns whether a process holds the lock of a model_dir."""
    from estimator_core._checkpoint.lock import ModelDirLock
    from estimator_core.errors import ModelDirLockedError

    try:
        with ModelDirLock(model_dir):
            return False
    except ModelDirLockedError:
        return True
