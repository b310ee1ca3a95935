"""Tests of 64-bit ids as two words."""

from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.testing import HostTransformSuite
from estimator_tables import WideIds


def test_words_hold_every_bit() -> None:
    ids = np.array([0, -1, 2**63 - 1, -(2**63), 2**32, 2**31, 2**40 + 7])
    words = WideIds(["id"]).apply({"id": ids, "other": ids})
    assert words["other"] is ids
    high, low = words["id"][..., 0].astype(np.int64), words["id"][..., 1].view(np.uint32).astype(np.int64)
    assert ((high << 32) | low).tolist() == ids.tolist()
    assert words["id"].dtype == np.int32
    assert words["id"][1].tolist() == [-1, -1]


def test_unsigned_ids_have_the_words_of_the_same_bits() -> None:
    ids = np.array([0, 2**63, 2**64 - 2], np.uint64)
    words = WideIds(["id"]).apply({"id": ids})["id"]
    assert words.tolist() == WideIds(["id"]).apply({"id": ids.view(np.int64)})["id"].tolist()
    assert words[2].tolist() == [-1, -2]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"other": np.zeros(2, np.int64)}, r"no feature 'id'. Features: \['other'\]"),
        ({"id": np.zeros(2)}, "'id' must hold integers, given float64"),
        ({"id": np.array([1, 2**64 - 1], np.uint64)}, r"'id' holds 2\*\*64 - 1, whose words stand for a missing id"),
    ],
)
def test_refused(batch: Any, message: str) -> None:
    with pytest.raises(ec.EstimatorError, match=message):
        WideIds(["id"]).apply(batch)


@pytest.mark.parametrize("features", ["id", []])
def test_a_list_of_names_is_needed(features: Any) -> None:
    with pytest.raises(ec.EstimatorError, match="takes a list of feature names"):
        WideIds(features)


class TestWideIds(HostTransformSuite):
    def make(self) -> WideIds:
        return WideIds(["id"])

    def batch(self) -> dict[str, np.ndarray]:
        return {"id": np.array([[1, -1], [2**40, 5], [-(2**50), 0], [7, 7]]), "weight": np.arange(4, dtype=np.float32)}


def test_arrays_in_memory_are_split_too(tmp_path: Path) -> None:
    ids = np.array([[1, -1], [2**40, 5], [-(2**50), 0], [7, 7]])

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        loss = ec.get_variable("w", ()) ** 2
        return ec.EstimatorSpec(mode, predictions=features["id"], loss=loss, train_op=optax.sgd(0.1))

    arrays = ec.inputs.numpy_input_fn({"id": ids}, batch_size=3, shuffle=False)
    estimator = ec.Estimator(model_fn, str(tmp_path), host_transforms=[WideIds(["id"])])
    estimator.train(arrays)
    found = np.stack(list(estimator.predict(arrays)))
    assert found.tolist() == WideIds(["id"]).apply({"id": ids})["id"].tolist()
