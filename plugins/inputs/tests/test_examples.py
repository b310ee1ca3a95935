"""Tests of serialized tf.Example records. Protobuf parses them without TensorFlow."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import estimator_core as ec
from estimator_core.errors import ArgumentError, ArgumentTypeError, InputError
from estimator_inputs import example_class, make_batched_features_dataset, write_tfrecord

#: `tf.train.Example` of {"age": int64 [7], "name": bytes [b"ann"], "x": float [0.5, -2.0]}, serialized by TensorFlow.
BY_TENSORFLOW = bytes.fromhex(
    "0a320a110a0178120c120a0a080000003f000000c00a0f0a046e616d6512070a050a03616e6e0a0c0a0361676512051a030a0107"
)
SPEC = {
    "x": ec.export.FixedLenFeature((2,), "float32"),
    "age": ec.export.FixedLenFeature((), "int64", default_value=-1),
    "name": ec.export.FixedLenFeature((), "string", default_value=b"nobody"),
}


def record(**features):
    example = example_class()()
    for name, values in features.items():
        feature = example.features.feature[name]
        first = values[0] if values else 0.0
        kind = (
            feature.bytes_list
            if isinstance(first, bytes)
            else feature.float_list
            if isinstance(first, float)
            else feature.int64_list
        )
        kind.value.extend(values)
    return example.SerializeToString(deterministic=True)


def parse(*records, spec=SPEC):
    receiver = ec.export.build_parsing_serving_input_receiver_fn(spec)()
    (transform,) = receiver.transforms
    return transform.apply({"examples": np.array(records, object)})


@given(
    st.lists(
        st.tuples(st.floats(width=32, allow_nan=False), st.integers(-(2**31), 2**31 - 1), st.binary()),
        min_size=1,
        max_size=5,
    )
)
def test_what_goes_in_comes_out(rows):
    found = parse(*(record(x=[value, 2.0], age=[age], name=[name]) for value, age, name in rows))
    assert found["x"].dtype == np.float32
    assert found["x"].tolist() == [[np.float32(value), 2.0] for value, _, _ in rows]
    assert found["age"].tolist() == [age for _, age, _ in rows]
    assert found["name"].tolist() == [name for _, _, name in rows]


def test_records_of_tensorflow_are_read():
    found = parse(BY_TENSORFLOW)
    assert found["x"].tolist() == [[0.5, -2.0]]
    assert found["age"].tolist() == [7]
    assert found["name"].tolist() == [b"ann"]


def test_ids_of_64_bits_are_parsed_for_host_transforms():
    found = parse(record(x=[1.0, 2.0], age=[-(2**63)]), record(x=[1.0, 2.0], age=[2**40 + 1]))["age"]
    assert found.dtype == np.int64
    assert found.tolist() == [-(2**63), 2**40 + 1]


def test_defaults_fill_what_is_missing():
    found = parse(record(x=[1.0, 2.0]))
    assert found["age"].tolist() == [-1]
    assert found["name"].tolist() in ([b"nobody"], ["nobody"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xff", "Record 1 is not a serialized tf.Example"),
        (record(age=[1]), "Record 1 lacks the feature 'x'"),
        (record(x=[1.0]), "'x' has 1 values, but must have 2"),
        (record(x=[1, 2]), "'x' is of kind int64_list, not float_list"),
        (record(x=[1.0, 2.0], small=[2**31]), "outside the range of int32"),
    ],
)
def test_bad_records_are_named(content, message):
    with pytest.raises(InputError, match=message):
        parse(record(x=[1.0, 2.0]), content, spec={**SPEC, "small": ec.export.FixedLenFeature((), "int32", 0)})


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ({}, ArgumentTypeError, "must be a dict"),
        ({"x": "float32"}, ArgumentTypeError, "must be an ec.export.FixedLenFeature"),
        ({"x": ec.export.FixedLenFeature((None,))}, ArgumentError, "must be fixed"),
        ({"x": ec.export.FixedLenSequenceFeature((2,), "int64")}, ArgumentTypeError, "sequences of items"),
    ],
)
def test_bad_specifications_are_refused(spec, error, message):
    with pytest.raises(error, match=message):
        ec.export.build_parsing_serving_input_receiver_fn(spec)


def test_the_receiver_takes_records_and_gives_features():
    receiver = ec.export.build_parsing_serving_input_receiver_fn({"x": SPEC["x"]}, default_batch_size=3)()
    assert receiver.receiver_tensors == {"examples": ec.export.Feature((3,), "string")}
    assert receiver.features == {"x": ec.export.Feature((3, 2), "float32")}


TAGS = {"tags": ec.export.VarLenFeature("string"), "n": ec.export.VarLenFeature("int64")}


def test_features_of_any_length_are_filled_up():
    receiver = ec.export.build_parsing_serving_input_receiver_fn(TAGS, places={"tags": 2, "n": 3})()
    (parsing,) = receiver.transforms
    found = parsing.apply({"examples": np.array([record(tags=[b"a"], n=[7, 2**40]), record()], object)})
    assert found["tags"].tolist() == [[b"a", b""], [b"", b""]]
    assert found["n"].tolist() == [[7, 2**40, -1], [-1, -1, -1]]
    with pytest.raises(InputError, match="Record 0: feature 'tags' has 3 values, more than 2"):
        parsing.apply({"examples": np.array([record(tags=[b"a", b"b", b"c"])], object)})


def test_places_are_those_given_else_what_training_saw():
    receiver = ec.export.build_parsing_serving_input_receiver_fn(TAGS, 4, places={"n": 2})()
    assert isinstance(receiver, ec.export.FitsTraining)
    fitted = receiver.fitted({"tags": 5, "n": 9})
    assert fitted.features == {"tags": ec.export.Feature((4, 5), "string"), "n": ec.export.Feature((4, 2), "int64")}
    with pytest.raises(ArgumentError, match=r"\['x'\] are not VarLenFeature"):
        ec.export.build_parsing_serving_input_receiver_fn(TAGS, places={"x": 1})


def test_a_default_that_is_no_number_is_kept_in_json():
    spec = {"x": ec.export.FixedLenFeature((2,), "float32", (math.nan, 1.5))}
    (parse,) = ec.export.build_parsing_serving_input_receiver_fn(spec)().transforms
    again = type(parse)(**json.loads(json.dumps(parse.config(), allow_nan=False)))
    empty = {"examples": np.array([ec.export.example_class()().SerializeToString()], object)}
    for one in (parse, again):
        np.testing.assert_array_equal(one.apply(empty)["x"], np.array([[np.nan, 1.5]], np.float32))
    assert again.config() == parse.config()


def test_a_default_text_is_what_it_was():
    for default in ("\u00e9", "\u00e9".encode()):
        spec = {"name": ec.export.FixedLenFeature((), "string", default)}
        (parsing,) = ec.export.build_parsing_serving_input_receiver_fn(spec)().transforms
        assert parsing.apply({"examples": np.array([record()], object)})["name"].tolist() == ["\u00e9".encode()]


def test_no_buffer_is_needed_where_nothing_is_shuffled(tmp_path):
    """Programs with tf.data call it this way for evaluation."""
    path = str(tmp_path / "rows.tfrecord")
    rows = [example_class()() for _ in range(4)]
    for number, row in enumerate(rows):
        row.features.feature["x"].float_list.value.append(number)
    write_tfrecord(path, [row.SerializeToString() for row in rows])
    spec = {"x": ec.export.FixedLenFeature((), "float32")}
    source = make_batched_features_dataset(path, 2, spec, num_epochs=1, shuffle=False, shuffle_buffer_size=None)
    batches = list(ec.inputs.open_input(source, mode="eval"))
    np.testing.assert_array_equal(np.concatenate([batch.features["x"] for batch in batches]), [0, 1, 2, 3])
    with pytest.raises((ArgumentError, ArgumentTypeError), match="shuffle_buffer_size"):
        make_batched_features_dataset(path, 2, spec, shuffle=True, shuffle_buffer_size=None)
