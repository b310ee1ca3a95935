"""Tests of what receivers accept and refuse."""

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError, ArgumentTypeError

X = ec.export.Feature((None, 2))
SCORES = np.zeros((2, 3), np.float32)


def test_single_features_and_receivers_get_the_names_of_the_original():
    receiver = ec.export.ServingInputReceiver(X, X)
    assert list(receiver.features) == ["feature"]
    assert list(receiver.receiver_tensors) == ["input"]
    bare = ec.export.TensorServingInputReceiver(X)
    assert bare.bare
    assert list(bare.receiver_tensors) == ["input"]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ec.export.ServingInputReceiver({}), ArgumentError, "features must not be empty"),
        (lambda: ec.export.ServingInputReceiver({(1,): X}), ArgumentError, "keys must be strings"),
        (lambda: ec.export.ServingInputReceiver({"x": X}, {1: X}), ArgumentError, "keys must be strings"),
        (lambda: ec.export.ServingInputReceiver({"x": 3}), ArgumentTypeError, "Give an ec.export.Feature"),
        (lambda: ec.export.TensorServingInputReceiver({"x": X}), ArgumentTypeError, "use ServingInputReceiver"),
        (lambda: ec.export.build_raw_serving_input_receiver_fn(X), ArgumentTypeError, "must be a dict"),
        (lambda: ec.export.build_raw_serving_input_receiver_fn({"x": X}, 0), ArgumentError, "positive int or None"),
    ],
)
def test_bad_receivers_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_raw_receiver_takes_example_arrays_and_a_fixed_batch_size():
    example = {"x": np.zeros((5, 2), np.int32)}
    assert ec.export.build_raw_serving_input_receiver_fn(example)().features["x"] == ec.export.Feature(
        (None, 2), "int32"
    )
    assert ec.export.build_raw_serving_input_receiver_fn(example, 4)().features["x"].shape == (4, 2)


def test_rename_is_data():
    assert ec.export.Rename(**ec.export.Rename({"a": "b"}).config()).apply({"a": SCORES}).keys() == {"b"}
