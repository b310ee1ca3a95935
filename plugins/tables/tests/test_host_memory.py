"""A table in the memory of the host has the same numbers, and neither the table nor its slots are on the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from split_program import COLUMNS, ROWS, batches

import estimator_core as ec
from estimator_tables import AllToAll, GrowingTable, WideIds
from estimator_tables.rows import with_rows

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10, 2), reason="needs jax 0.10.2")
HOST, SLOTS = "pinned_host", {"mu", "nu"}


class Where(ec.Hook):
    """Records the memory of the arrays of the state after each step."""

    def __init__(self) -> None:
        self.variables: dict[str, str | None] = {}
        self.slots: set[tuple[str, str | None]] = set()

    def after_step(self, run: Any, step: int, outputs: Any) -> None:
        state = run.state
        self.variables = {name: value.sharding.memory_kind for name, value in state.variables.items()}
        for path, leaf in jax.tree_util.tree_flatten_with_path(state.opt_state)[0]:
            if leaf.shape == (ROWS, COLUMNS):
                self.slots |= {(part, leaf.sharding.memory_kind) for part in SLOTS if f".{part}" in map(str, path)}


def estimator_in(model_dir: Path, memory: str | None, **settings: Any) -> ec.Estimator:
    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        normal = jax.nn.initializers.normal(0.5)
        access = AllToAll(memory=memory)
        rows = ec.sparse_lookup("table", features["ids"], (ROWS, COLUMNS), normal, access=access)
        y = jnp.asarray(rows.sum(axis=1) @ ec.get_variable("kernel", (COLUMNS,)), jnp.float32)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"y": y})
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.adam(0.05))

    return ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(model_dir), tf_random_seed=1, **settings))


def seen(root: Path, memory: str | None, **settings: Any) -> tuple[dict[str, Any], float, list[Any]]:
    """The results of a model that is trained, resumed, evaluated and used for predictions."""
    estimator_in(root, memory, **settings).train(lambda: batches()[:2])
    estimator = estimator_in(root, memory, **settings)
    estimator.train(lambda: batches(ragged=True)[2:])
    loss = estimator_in(root, memory, **settings).evaluate(batches)["loss"]
    predictions = list(estimator_in(root, memory, **settings).predict(lambda: [batches()[0][0]]))
    return dict(estimator.variables), loss, [each["y"] for each in predictions]


@pytest.mark.parametrize(
    "settings",
    [
        {"accumulate_steps": 2},
        *(
            pytest.param(more, marks=pytest.mark.slow)
            for more in ({"steps_per_dispatch": 2}, {"precision": "bfloat16"})
        ),
    ],
    ids=str,
)
def test_the_numbers_are_those_of_a_table_on_the_device(tmp_path: Path, settings: dict[str, Any]) -> None:
    (expected, loss, predictions), found = (seen(tmp_path / str(m), m, **settings) for m in (None, HOST))
    for name, value in expected.items():
        np.testing.assert_allclose(found[0][name], value, rtol=0, atol=1e-6, err_msg=name)
    np.testing.assert_allclose([found[1], *found[2]], [loss, *predictions], rtol=1e-5)


@pytest.mark.parametrize("resumed", [False, True])
def test_table_and_slots_are_in_the_memory_of_the_host(tmp_path: Path, resumed: bool) -> None:
    if resumed:
        estimator_in(tmp_path, None).train(lambda: batches()[:2])  # the checkpoint does not record the memory
    where = Where()
    estimator_in(tmp_path, HOST).train(lambda: batches()[2:], hooks=[where])
    assert where.variables["table"] == HOST
    assert where.variables["kernel"] != HOST
    assert where.slots == {(part, HOST) for part in SLOTS}


@pytest.mark.slow
def test_a_growing_table_in_the_memory_of_the_host(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    drawn = [({"user": rng.integers(0, 80, (16, 2))}, rng.normal(size=16).astype(np.float32)) for _ in range(6)]
    found: list[Any] = []
    for memory in (None, HOST):
        users = GrowingTable(rows=32, columns=4, admit_at=2, max_age=2, access=AllToAll(memory=memory))

        def model_fn(features: Any, labels: Any, mode: str, users: GrowingTable = users) -> ec.EstimatorSpec:
            chance = users.lookup("user", features["user"], mode).sum(axis=(1, 2))
            loss = jnp.mean((chance + ec.get_variable("bias", ()) - labels) ** 2)
            return ec.EstimatorSpec(mode, loss=loss, train_op=optax.adagrad(0.1))

        config = ec.RunConfig(model_dir=str(tmp_path / str(memory)), tf_random_seed=1)
        estimator = ec.Estimator(model_fn, config=config, host_transforms=[WideIds(["user"])])
        found.append(estimator.train(lambda: drawn).variables)
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_rows_written_by_the_host_and_by_the_device_are_the_same(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    """A GPU writes the rows itself. A CPU can run the same program."""
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    where = jax.NamedSharding(mesh, jax.P(), memory_kind=HOST)
    table = jax.device_put(np.zeros((ROWS, COLUMNS), np.float32), where)
    new = np.arange(1, 1 + 3 * COLUMNS, dtype=np.float32).reshape(3, COLUMNS)
    numbers = jnp.array([2, ROWS - 1, ROWS])
    write = jax.jit(lambda *arguments: with_rows(*arguments), donate_argnums=0, out_shardings=where)
    lowered = write.lower(table, numbers, new)
    assert ("_xla_compute_type" in lowered.as_text()) == (backend == "cpu")
    expected = np.zeros((ROWS, COLUMNS), np.float32)
    expected[[2, ROWS - 1]] = new[:2]
    np.testing.assert_array_equal(lowered.compile()(table, numbers, new), expected)
