"""Tests of a growing table: training, checkpoints, devices, evaluation and exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import growing_program
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from own_process import on_devices

import estimator_core as ec
from estimator_tables import GrowingTable, WideIds, known_ids
from estimator_tables.fresh_rows import FreshRows

STEPS = 8


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> ec.Estimator:
    """An estimator that trained without interruption, on one device."""
    estimator = growing_program.estimator_in(str(tmp_path_factory.mktemp("whole")))
    return estimator.train(growing_program.input_fn(STEPS), max_steps=STEPS)


@pytest.mark.slow
def test_a_killed_run_goes_on_with_eight_devices_and_has_the_rows_of_the_whole_run(
    whole: ec.Estimator, tmp_path: Path
) -> None:
    """It is killed on one device after its checkpoint of step 3, resumed on eight, and finished on one."""
    assert on_devices(1, growing_program.__file__, tmp_path, 8, 5) == -9
    assert on_devices(8, growing_program.__file__, tmp_path, 6) == 0
    growing_program.estimator_in(str(tmp_path)).train(growing_program.input_fn(STEPS), max_steps=STEPS)
    parts, expected = ec.load_variables(str(tmp_path)), whole.variables
    for name in ("user/ids", "user/counts", "user/seen", "user/clock"):
        np.testing.assert_array_equal(parts[name], expected[name], err_msg=name)
    np.testing.assert_allclose(parts["user/rows"], expected["user/rows"], rtol=0, atol=1e-6)


def test_a_resumed_run_is_the_whole_run_bit_for_bit(whole: ec.Estimator, tmp_path: Path) -> None:
    for until in (4, STEPS):
        growing_program.estimator_in(str(tmp_path)).train(growing_program.input_fn(STEPS), max_steps=until)
    parts = ec.load_variables(str(tmp_path))
    assert {name: value.tobytes() for name, value in whole.variables.items()} == {
        name: np.asarray(value).tobytes() for name, value in parts.items()
    }


def test_unknown_ids_have_the_default_row_in_prediction_and_in_an_export(whole: ec.Estimator, tmp_path: Path) -> None:
    variables = whole.variables
    known = known_ids(variables, "user")
    some = next(iter(known))
    ids = np.array([[some, -1, -1], [3, -1, -1], [some, 2**50, 3]])
    rows = variables["user/rows"].sum(axis=1)
    expected = variables["bias"] + [rows[known[some]], rows[0], rows[known[some]] + 2 * rows[0]]
    predicted = [each["y"] for each in whole.predict(lambda: [{"user": ids}])]
    np.testing.assert_allclose(predicted, expected, rtol=1e-5)
    pytest.importorskip("estimator_exporters")
    receiver = ec.export.build_raw_serving_input_receiver_fn({"user": np.zeros((1, 3), np.int64)})
    served = ec.export.load(whole.export_saved_model(str(tmp_path), receiver)).raw_signatures["serving_default"]
    np.testing.assert_allclose(np.asarray(served(user=ids)["y"]), expected, rtol=1e-5)


@pytest.mark.plugins
@pytest.mark.parametrize("kind", ["FixedLenFeature", "VarLenFeature"])
def test_requests_of_tf_examples_carry_ids_of_64_bits(whole: ec.Estimator, tmp_path: Path, kind: str) -> None:
    ids = np.array([[next(iter(known_ids(whole.variables, "user"))), 2**50, -1], [3, -(2**50), 2**63 - 1]])
    fixed = kind == "FixedLenFeature"
    spec = ec.export.FixedLenFeature((3,), "int64") if fixed else ec.export.VarLenFeature("int64")
    places = None if fixed else {"user": 3}
    receiver = ec.export.build_parsing_serving_input_receiver_fn({"user": spec}, places=places)
    served = ec.export.load(whole.export_saved_model(str(tmp_path), receiver)).raw_signatures["serving_default"]
    records = [ec.export.example_class()() for _ in ids]
    for record, row in zip(records, ids.tolist(), strict=True):
        record.features.feature["user"].int64_list.value.extend(row)
    found = served(examples=np.array([record.SerializeToString() for record in records], object))
    expected = [each["y"] for each in whole.predict(lambda: [{"user": ids}])]
    np.testing.assert_array_equal(np.asarray(found["y"]), expected)


def test_evaluation_changes_nothing(whole: ec.Estimator) -> None:
    before = whole.variables
    whole.evaluate(growing_program.input_fn(2))
    assert all(np.array_equal(before[name], value) for name, value in whole.variables.items())


def test_the_table_admits_and_evicts(whole: ec.Estimator, tmp_path: Path) -> None:
    early = growing_program.estimator_in(str(tmp_path))
    early.train(growing_program.input_fn(STEPS), max_steps=3)
    first, last = (known_ids(each.variables, "user") for each in (early, whole))
    assert set(first.values()) & set(last.values()), "rows have new owners"
    assert not set(first) <= set(last)
    assert all(2**40 <= each < 2**41 for each in last)


def test_a_row_that_changes_its_owner_begins_anew_with_its_slots() -> None:
    """The row and Adagrad's sum of squares are as if they were unused."""
    access = FreshRows(GrowingTable(rows=32, columns=2).access, "t", None)
    optimizer = optax.with_extra_args_support(optax.adagrad(0.1))
    first = access.first_rows(jnp.arange(32), 2, jnp.float32)
    used_table, used_slots = first + 5, jax.tree.map(lambda leaf: leaf + 7, optimizer.init(first))
    gradients = jnp.ones((2, 2))

    def updated(table: Any, slots: Any, ids: list[int]) -> Any:
        return access.update(optimizer, table, slots, jnp.array(ids), gradients)

    begun, begun_slots = updated(used_table, used_slots, [3 + 32, 9])
    never, never_slots = updated(first, optimizer.init(first), [3, 9])
    kept, kept_slots = updated(used_table, used_slots, [3, 9])
    for got, new, old in zip(
        *(
            jax.tree.leaves(each)
            for each in (
                (begun, begun_slots[0].sum_of_squares),
                (never, never_slots[0].sum_of_squares),
                (kept, kept_slots[0].sum_of_squares),
            )
        ),
        strict=True,
    ):
        np.testing.assert_array_equal(got[3], new[3])
        np.testing.assert_array_equal(got[9], old[9])
    np.testing.assert_array_equal(access.read(used_table, jnp.array([35, 3])), [first[3], used_table[3]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 40, "columns": 2}, "rows must be a multiple of 16, from 32 to 2..30, given: 40"),
        ({"rows": 16, "columns": 2}, "given: 16"),
        ({"rows": 2**31, "columns": 2}, "given: 2147483648"),
        ({"rows": 32, "columns": 0}, "columns must be at least 1, given: 0"),
        ({"rows": 32, "columns": 2, "admit_at": 0}, "admit_at must be at least 1"),
        ({"rows": 32, "columns": 2, "max_age": 0}, "max_age must be at least 1"),
        (
            {"rows": 32, "columns": 2, "max_age": 2**40},
            "max_age must be below 2..31, given: 1099511627776",
        ),
        (
            {"rows": 32, "columns": 2, "admit_at": 2**31},
            "admit_at must be below 2..31, given: 2147483648",
        ),
        ({"rows": 64.0, "columns": 2}, "rows must be an integer, given: 64.0"),
        ({"rows": 64, "columns": None}, "columns must be an integer, given: None"),
        ({"rows": 64, "columns": 2, "max_age": "3"}, "max_age must be an integer, given: '3'"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ec.EstimatorError, match=message):
        GrowingTable(**arguments)


def trained(model_fn: Any, ids: np.ndarray, tmp_path: Path) -> None:
    ec.Estimator(model_fn, model_dir=str(tmp_path)).train(lambda: [{"user": ids}])


def test_ids_without_words_are_refused(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        growing_program.USERS.lookup("user", features["user"], mode)

    with pytest.raises(ec.EstimatorError, match=r"ids must be words, int32\[\.\.\., 2\], given int32\[4, 3\]"):
        trained(model_fn, np.zeros((4, 3), np.int32), tmp_path)


def test_a_second_lookup_of_a_table_is_refused(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        for _ in range(2):
            growing_program.USERS.lookup("user", features["user"], mode)

    with pytest.raises(ec.EstimatorError, match=r"A model_fn looks up a table once, .* concatenate the ids"):
        trained(model_fn, np.zeros((4, 2), np.int32), tmp_path)


def test_a_table_that_is_not_there(whole: ec.Estimator) -> None:
    with pytest.raises(ec.EstimatorError, match=r"no growing table 'item'. Tables: \['user'\]"):
        known_ids(whole.variables, "item")


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_an_admitted_id_is_read_as_it_is_stored(tmp_path: Path, precision: str) -> None:
    seen: list[float] = []

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        rows = GrowingTable(rows=32, columns=4).lookup("user", features["user"], mode)
        return ec.EstimatorSpec(mode, loss=rows.astype(jnp.float32).sum(), train_op=optax.sgd(0.0))

    class Losses(ec.Hook):
        def next_step(self, step: int) -> int:
            return step + 1

        def after_step(self, run: ec.Run, step: int, outputs: Any) -> None:
            seen.append(float(outputs["loss"]))

    config = ec.RunConfig(model_dir=str(tmp_path), precision=precision, default_hooks=False)
    estimator = ec.Estimator(model_fn, config=config, host_transforms=[WideIds(["user"])])
    estimator.train(lambda: [({"user": np.array([7])}, np.ones(1, np.float32))] * 3, hooks=[Losses()])
    stored = estimator.variables["user/rows"][known_ids(estimator.variables, "user")[7]].sum()
    assert seen[0] == seen[1] == seen[2]
    assert seen[0] == pytest.approx(stored, abs=0.02)


def test_a_batch_without_any_id(tmp_path: Path) -> None:
    def empty() -> Any:
        return [({"user": np.zeros((4, 0), np.int64)}, np.ones(4, np.float32))]

    estimator = growing_program.estimator_in(str(tmp_path)).train(empty)
    assert known_ids(estimator.variables, "user") == {}
    assert estimator.evaluate(empty)["global_step"] == 1
