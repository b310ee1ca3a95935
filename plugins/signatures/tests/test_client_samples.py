"""Tests of the requests that the check of an export makes from the descriptions of host transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from estimator_signatures.client_samples import client_samples

TEXT = ec.export.Feature((None, 3), "string")


def samples(*operations: Any, **receiver: ec.export.Feature) -> dict[str, np.ndarray]:
    program = ec.export.HostProgram(operations=operations)
    return client_samples([program], receiver, 200, np.random.default_rng(0))


def test_requests_hold_known_unknown_and_missing_words() -> None:
    shaped = ec.export.Reshape(input="word", output="rows", shape=(3,))
    lookup = ec.export.Lookup(input="rows", output="ids", words=(b"Rome", b"Oslo"))
    words = set(samples(shaped, lookup, word=TEXT)["word"].reshape(-1).tolist())
    assert {b"Rome", b"Oslo", b""} < words
    assert words - {b"Rome", b"Oslo", b""}, "no word is unknown"


def test_requests_keep_to_the_places_of_a_column_and_fill_sequences() -> None:
    fit = ec.export.Fit(input="word", output="rows", width=2, fill=b"")
    found = samples(fit, ec.export.Lengths(input="rows", output="lengths"), word=TEXT)["word"]
    assert (found[:, 2] == b"").all()
    assert (found[:, :2] != b"").all()


def test_requests_stand_on_both_sides_of_boundaries() -> None:
    bucketize = ec.export.Bucketize(input="age", output="ids", boundaries=(30.0, 50.0))
    ages = samples(bucketize, age=ec.export.Feature((None, 1), "float32"))["age"]
    assert {30.0, 50.0} <= set(ages.reshape(-1).tolist())
    assert ages.min() < 30.0 < 50.0 < ages.max()


@pytest.mark.plugins  # estimator-inputs parses tf.Examples
def test_requests_of_records_are_tf_examples() -> None:
    spec = {
        "x": ec.export.FixedLenFeature((2,), "float32"),
        "n": ec.export.FixedLenFeature((), "int64", 5),
        "tags": ec.export.VarLenFeature("string"),
    }
    receiver = ec.export.build_parsing_serving_input_receiver_fn(spec, places={"tags": 3})()
    programs = ec.export.host_programs(receiver.transforms, receiver.receiver_tensors)
    batch = client_samples(programs, receiver.receiver_tensors, 50, np.random.default_rng(0))
    found = receiver.transforms[0].apply(batch)
    assert {name: array.shape for name, array in found.items()} == {"x": (50, 2), "n": (50,), "tags": (50, 3)}
    assert np.ptp(found["x"]) > 1
    assert (found["tags"] == b"").any()
    assert (found["tags"] != b"").any()
