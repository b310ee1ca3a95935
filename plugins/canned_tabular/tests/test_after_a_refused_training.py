"""Tests that an Estimator whose first training was refused learns from the corrected data of the next one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_canned_tabular as ct
import estimator_core as ec
from estimator_core.errors import InputError


def _input_fn(ages: Any, sizes: Any, labels: Any) -> Any:
    features = {"age": np.array(ages, np.float32), "size": np.array(sizes, np.float32)}
    return ec.inputs.numpy_input_fn(features, np.array(labels), batch_size=4, num_epochs=1, shuffle=False)


def test_classes_and_replacements_of_refused_data_are_forgotten(tmp_path: Path) -> None:
    """The mean of the refused data once replaced missing numbers, without a word."""
    columns = [ct.numeric_column("age", missing="mean"), ct.numeric_column("size")]
    estimator = ct.DNNClassifier([2], columns, model_dir=str(tmp_path), n_classes=2)
    for _ in range(2):
        with pytest.raises(InputError, match="'size' holds nan in row 1"):
            estimator.train(_input_fn([900, np.nan, 900, 900], [1, np.nan, 1, 1], ["p", "q", "p", "q"]))
    estimator.train(_input_fn([30, np.nan, 10, 20], [1, 1, 1, 1], ["a", "b", "a", "b"]))
    known = json.loads(np.asarray(estimator.get_variable_value("data_contract")).tobytes())
    assert known == {"features/age": [20.0], "labels": ["a", "b"]}
    estimator.train(_input_fn([50, np.nan, 50, 50], [1, 1, 1, 1], ["a", "b", "a", "b"]))
    again = json.loads(np.asarray(estimator.get_variable_value("data_contract")).tobytes())
    assert again == known
