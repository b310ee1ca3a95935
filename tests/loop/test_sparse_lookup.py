"""Tests of row-sparse lookups: training equals that with dense gradients where the two are comparable, and the work of
a step depends on the touched rows.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.model import WholeTable

ROWS, COLUMNS = 50, 4
IDS = np.array([[1, 7], [7, 7], [3, 49], [-1, 50]], np.int32)  # the last row has no lookup
Y = np.array([1.0, -1.0, 0.5, 0.25], np.float32)


@dataclass(frozen=True)
class Other(WholeTable):
    """An access that differs from the default."""


def model_fn_with(optimizer: Any, *, sparse: bool) -> Any:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        init = jax.nn.initializers.normal(1.0)
        if sparse:
            rows = ec.sparse_lookup("table", features["ids"], (ROWS, COLUMNS), init)
        else:
            rows = jnp.take(
                ec.get_variable("table", (ROWS, COLUMNS), init),
                jnp.where(features["ids"] < 0, ROWS, features["ids"]),
                axis=0,
                mode="fill",
                fill_value=0,
            )
        y = rows.sum(axis=1) @ ec.get_variable("w", (COLUMNS,), jax.nn.initializers.ones)
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optimizer, predictions=y)

    return model_fn


def train(tmp_path: Any, optimizer: Any, *, sparse: bool, steps: int = 3, **config: Any) -> ec.Estimator:
    settings = {
        "model_dir": str(tmp_path),
        "tf_random_seed": 1,
        "save_checkpoints_steps": 2,
        "default_hooks": False,
        **config,
    }
    return ec.Estimator(model_fn_with(optimizer, sparse=sparse), config=ec.RunConfig(**settings)).train(
        lambda: [({"ids": IDS}, Y)] * steps
    )


def rows_of_the_batch() -> optax.GradientTransformation:
    """Keeps a number for each row of the gradient, as optax.adafactor does for large gradients."""

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        return updates, jax.tree.map(lambda _, leaf: leaf.sum(tuple(range(1, leaf.ndim))), state, updates)

    def init(params: Any) -> Any:
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape if leaf.ndim == 1 else (1,)), params)

    return optax.GradientTransformation(init, update)


@pytest.mark.parametrize(
    "optimizer", [pytest.param(optax.sgd(0.1), marks=pytest.mark.slow), optax.adagrad(0.1)], ids=["sgd", "adagrad"]
)
def test_equal_to_dense_where_untouched_rows_do_not_move(tmp_path: Any, optimizer: Any) -> None:
    dense = train(tmp_path / "dense", optimizer, sparse=False).variables
    sparse = train(tmp_path / "sparse", optimizer, sparse=True).variables
    np.testing.assert_allclose(sparse["table"], dense["table"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(sparse["w"], dense["w"], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_ids_out_of_range_do_not_count_in_a_norm(tmp_path: Any) -> None:
    clipped = optax.chain(optax.clip_by_global_norm(0.01), optax.sgd(1.0))
    before = train(tmp_path / "start", optax.sgd(0.0), sparse=True, steps=1).variables["table"]
    after = train(tmp_path / "end", clipped, sparse=True, steps=1).variables["table"]
    np.testing.assert_allclose(np.linalg.norm(after - before), 0.01, rtol=1e-5)


def test_lookups_of_a_table_have_one_access(tmp_path: Any) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        rows = ec.sparse_lookup("table", features["ids"], (ROWS, COLUMNS))
        rows += ec.sparse_lookup("table", features["ids"], (ROWS, COLUMNS), access=Other())
        return ec.EstimatorSpec(mode, loss=jnp.mean(rows), train_op=optax.sgd(0.1))

    with pytest.raises(ec.EstimatorError, match=r"Lookups of 'table' differ in their access: WholeTable.*Other"):
        ec.Estimator(model_fn, model_dir=str(tmp_path)).train(lambda: [({"ids": IDS}, Y)])


@pytest.mark.parametrize(
    "optimizer",
    [
        optax.MultiSteps(optax.sgd(0.1), 2),
        optax.chain(optax.clip(1.0), optax.MultiSteps(optax.sgd(0.1), 2).gradient_transformation()),
        optax.chain(optax.apply_every(2), optax.sgd(0.1)),
    ],
    ids=["MultiSteps", "in a chain", "apply_every"],
)
def test_gradients_that_wait_for_a_step_of_other_rows_are_refused(tmp_path: Any, optimizer: Any) -> None:
    with pytest.raises(ec.EstimatorError, match=r"only the rows of .table. .*: gradients of other rows would be lost"):
        train(tmp_path / "sparse", optimizer, sparse=True)
    train(tmp_path / "dense", optimizer, sparse=False)


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        (optax.sm3(0.1), r"rows of 'table' \(a slot for \(50, 4\) has \(50,\)\)"),
        (optax.adafactor(0.1, min_dim_size_to_factor=4), r"rows of 'table' \(a slot for \(50, 4\) has \(50,\)\)"),
        (rows_of_the_batch(), r"rows of 'table' \(a slot of \(1,\) becomes \(8,\)\)"),
    ],
    ids=["sm3", "adafactor", "batch"],
)
def test_an_optimizer_that_mixes_rows_is_refused(tmp_path: Any, optimizer: Any, message: str) -> None:
    with pytest.raises(ec.EstimatorError, match=message):
        train(tmp_path, optimizer, sparse=True)


def test_slots_may_be_numbers_of_python(tmp_path: Any) -> None:
    """A transformation of a user may have such slots, for example a count that begins at 0."""

    def update(gradients: Any, state: Any, _: Any = None) -> Any:
        rate = 0.1 / (1 + state["count"])
        return jax.tree.map(lambda gradient: -rate * gradient, gradients), {"count": state["count"] + 1}

    falling = optax.GradientTransformation(lambda _: {"count": 0.0}, update)
    sparse = train(tmp_path / "sparse", falling, sparse=True).variables
    dense = train(tmp_path / "dense", falling, sparse=False).variables
    np.testing.assert_allclose(sparse["table"], dense["table"], rtol=1e-5, atol=1e-6)


def test_without_an_access_a_table_is_whole(tmp_path: Any) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        rows = ec.sparse_lookup("table", features["ids"], (ROWS, COLUMNS), access=None)
        return ec.EstimatorSpec(mode, loss=jnp.mean(rows), train_op=optax.sgd(0.1))

    estimator = ec.Estimator(model_fn, model_dir=str(tmp_path)).train(lambda: [({"ids": IDS}, Y)])
    assert estimator.variables["table"].shape == (ROWS, COLUMNS)


def test_untouched_rows_stay_bitwise_and_touched_rows_move(tmp_path: Any) -> None:
    before = train(tmp_path / "start", optax.sgd(0.0), sparse=True, steps=1).variables["table"]
    after = train(tmp_path / "end", optax.adam(0.1), sparse=True).variables["table"]
    touched = np.zeros(ROWS, bool)
    touched[[1, 3, 7, 49]] = True
    assert np.array_equal(after[~touched], before[~touched])
    assert (after[touched] != before[touched]).any(axis=1).all()


@pytest.mark.slow
def test_accumulated_micro_batches_give_the_same_rows(tmp_path: Any) -> None:
    whole = train(tmp_path / "whole", optax.sgd(0.1), sparse=True).variables
    parts = train(tmp_path / "parts", optax.sgd(0.1), sparse=True, accumulate_steps=2).variables
    np.testing.assert_allclose(parts["table"], whole["table"], rtol=1e-5, atol=1e-6)


def test_batches_of_the_form_that_discovery_saw_are_not_traced_for_their_lookups(tmp_path: Any) -> None:
    forms: list[tuple[int, ...]] = []

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        forms.append(features["ids"].shape)
        return model_fn_with(optax.sgd(0.1), sparse=True)(features, labels, mode)

    config = ec.RunConfig(model_dir=str(tmp_path), default_hooks=False)
    ec.Estimator(model_fn, config=config).train(lambda: [({"ids": IDS}, Y), ({"ids": IDS[:2]}, Y[:2])])
    assert forms == [(4, 2)] * 2 + [(2, 2)] * 2  # discovery, the step; the lookups of another form, its step


def test_resumes(tmp_path: Any) -> None:
    whole = train(tmp_path / "whole", optax.adam(0.1), sparse=True, steps=4).variables
    train(tmp_path / "parts", optax.adam(0.1), sparse=True, steps=2)
    parts = train(tmp_path / "parts", optax.adam(0.1), sparse=True, steps=2).variables
    assert parts["table"].tobytes() == whole["table"].tobytes()


def test_the_compiled_step_touches_rows_not_the_table(tmp_path: Any) -> None:
    """Only in-place updates of the program have the size of the table, according to XLA's cost analysis."""

    def bytes_accessed(rows: int) -> float:
        global ROWS
        saved, ROWS = ROWS, rows
        try:
            estimator = train(tmp_path / str(rows), optax.adam(0.1), sparse=True, steps=1)
            step = estimator._programs.train_step(estimator._devices, frozenset())
            compiled = step.step.lower(estimator._state.state, {"ids": IDS}, Y, None).compile()
            memory = compiled.memory_analysis()
            return float(memory.temp_size_in_bytes)
        finally:
            ROWS = saved

    small, large = bytes_accessed(1_000), bytes_accessed(100_000)
    assert large < small + 64 * 1024


def test_ids_must_be_integers() -> None:
    with pytest.raises(ec.EstimatorError, match="ids must be integers"):
        ec.sparse_lookup("table", np.ones(3, np.float32), (3, 2))


def table_of(rows: int, train_op: Any = None) -> ec.Estimator:
    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        y = ec.sparse_lookup("item", features["item"], (rows, 2)).sum(-1)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"y": y})
        return ec.EstimatorSpec(mode, loss=((y - labels) ** 2).sum(), train_op=train_op or optax.sgd(0.1))

    return ec.Estimator(model_fn, tempfile.mkdtemp(), ec.RunConfig(default_hooks=False, tf_random_seed=1))


@pytest.mark.parametrize(
    ("dtype", "rows", "ids"),
    [
        (np.int8, 300, [3, -1, 127, -128]),
        (np.int16, 80_000, [3, -1, 30_000, -5]),
        (np.uint8, 320, [3, 255, 100, 0]),
        (np.uint16, 80_000, [3, 40_000, 65_535, 9]),
        (np.uint32, 64, [3, 2**32 - 1, 63, 64]),
    ],
)
def test_ids_of_any_dtype_read_and_train_their_own_rows(dtype: Any, rows: int, ids: list[int]) -> None:
    given, plain = np.array(ids, dtype), np.array([one if one < rows else -1 for one in ids], np.int32)
    found = []
    for values in (given, plain):
        estimator = table_of(rows).train(lambda values=values: [({"item": values}, np.ones(4, np.float32))] * 3)
        predicted = [one["y"] for one in estimator.predict(lambda values=values: [{"item": values}])]
        found.append((estimator.variables["item"], np.array(predicted)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    assert [bool(y) for y in found[0][1]] == [0 <= one < rows for one in ids]


def test_an_id_of_64_bits_does_not_train_the_row_of_its_low_word() -> None:
    ids = np.array([3, 2**32 + 5], np.int64)
    jax.config.update("jax_enable_x64", True)
    try:
        estimator = table_of(64)
        estimator.train(lambda: [({"item": ids}, np.ones(2, np.float32))], steps=1)
        before = estimator.variables["item"].copy()
        estimator.train(lambda: [({"item": ids}, np.ones(2, np.float32))], steps=1)
        (changed,) = np.nonzero((estimator.variables["item"] != before).any(axis=1))
        (_, far) = [one["y"] for one in estimator.predict(lambda: [{"item": ids}])]
    finally:
        jax.config.update("jax_enable_x64", False)
    assert changed.tolist() == [3]
    assert far == 0.0


def test_a_custom_train_op_has_no_gradients_of_rows() -> None:
    def update(variables: Any, state: Any, grad: Any) -> Any:
        return variables, state

    estimator = table_of(64, ec.custom_train_op(update, lambda variables: ()))
    with pytest.raises(
        ec.EstimatorError, match=r"no gradients of the rows that ec\.sparse_lookup reads from \['item'\]"
    ):
        estimator.train(lambda: [({"item": np.arange(4)}, np.ones(4, np.float32))])
