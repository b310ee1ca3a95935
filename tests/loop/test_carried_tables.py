"""Tests of tables that a training carries in a form defined by their access. All other code sees the plain table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.model import WholeTable

WHOLE, SHAPE = WholeTable(), (6, 2)


class Owing(NamedTuple):
    """A table and the updates that are still to be added to it."""

    table: jax.Array
    owed: jax.Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.table.shape

    @property
    def dtype(self) -> Any:
        return self.table.dtype


class Late:
    """An access whose arrays change only when they are settled."""

    def __init__(self) -> None:
        self.settlements = 0

    def opened(self, table: jax.Array, opt_state: Any) -> tuple[Any, Any]:
        return Owing(table, jnp.zeros_like(table)), opt_state

    def settled(self, table: Owing, opt_state: Any) -> tuple[Any, Any]:
        self.settlements += 1
        return Owing(table.table + table.owed, jnp.zeros_like(table.owed)), opt_state

    def closed(self, table: Owing, opt_state: Any) -> tuple[jax.Array, Any]:
        return table.table, opt_state


class LateAccess:
    sharding = memory = None

    def __init__(self) -> None:
        self.carried = Late()

    def read(self, table: Any, ids: jax.Array) -> jax.Array:
        return WHOLE.read(table.table + table.owed if isinstance(table, Owing) else table, ids)

    def update(self, transformation: Any, table: Any, opt_state: Any, *rows: jax.Array, **extra: Any) -> Any:
        if not isinstance(table, Owing):
            return WHOLE.update(transformation, table, opt_state, *rows, **extra)
        now, opt_state = WHOLE.update(transformation, table.table + table.owed, opt_state, *rows, **extra)
        return Owing(table.table, now - table.table), opt_state


def estimator_with(access: Any, model_dir: Path, **settings: Any) -> ec.Estimator:
    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        rows = ec.sparse_lookup("table", features["ids"], SHAPE, jax.nn.initializers.ones, access=access)
        return ec.EstimatorSpec(mode, loss=jnp.mean((rows.sum(axis=1) - 8) ** 2), train_op=optax.sgd(0.25))

    return ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(model_dir), tf_random_seed=1, **settings))


def input_fn() -> list[Any]:
    return [{"ids": np.array(ids)} for ids in ([0, 1], [1, 2], [5, 5], [0, 3], [4, 1], [2, 0])]


class Seen(ec.Hook):
    def __init__(self) -> None:
        self.found: list[Any] = []

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if step % 2 == 0:
            self.found.append(np.array(run.state.variables["table"]).tolist())


@pytest.mark.parametrize("settings", [{"steps_per_dispatch": 2}, {"accumulate_steps": 2}], ids=str)
def test_hooks_checkpoints_and_evaluation_see_the_table(tmp_path: Path, settings: dict[str, Any]) -> None:
    late, hooks = LateAccess(), [Seen(), Seen()]
    made = [
        estimator_with(access, tmp_path / type(access).__name__, **settings).train(input_fn, max_steps=4, hooks=[hook])
        for access, hook in zip((WHOLE, late), hooks, strict=True)
    ]
    for estimator in made:
        assert np.array_equal(ec.load_variables(estimator.model_dir)["table"], estimator.variables["table"])
    assert hooks[0].found == hooks[1].found
    assert len({estimator.evaluate(input_fn)["loss"] for estimator in made}) == 1
    whole, other = (estimator.train(input_fn, steps=2).variables["table"] for estimator in made)
    np.testing.assert_array_equal(other, whole)
    assert late.carried.settlements


def test_a_form_is_settled_only_for_those_who_look(tmp_path: Path) -> None:
    late = LateAccess()
    estimator_with(late, tmp_path, default_hooks=False).train(input_fn)
    assert late.carried.settlements == 1, "for the checkpoint at the end"
