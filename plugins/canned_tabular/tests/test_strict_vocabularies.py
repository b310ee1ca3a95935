"""Tests of the tokens that a model knows: those of vocabulary columns that would silently skip other tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_canned_tabular as tab
from estimator_core.errors import ArgumentError, InputError
from estimator_inputs import csv_input_fn

SIZES = tab.categorical_column_with_vocabulary_list("size", ["S", "M"])


def colours(tmp_path: Path, **options: Any) -> Any:
    path = tmp_path / "colours.txt"
    path.write_bytes(b"red\ngr\xc3\xbcn\n\xff\n")
    return tab.categorical_column_with_vocabulary_file("colour", path, **options)


def test_lists_files_and_the_label(tmp_path: Path) -> None:
    zones = tab.categorical_column_with_vocabulary_list("zone", [3, 1])
    columns = [tab.indicator_column(SIZES), colours(tmp_path), tab.embedding_column(zones, 2), tab.numeric_column("x")]
    found = tab.strict_vocabularies(columns, label="sold", label_vocabulary=["no", "yes"])
    assert found == {
        "size": ("S", "M", ""),
        "colour": ("red", "gr\u00fcn", b"\xff", ""),
        "zone": (3, 1, -1),
        "sold": ("no", "yes"),
    }
    assert tab.strict_vocabularies([colours(tmp_path, vocabulary_size=1)]) == {"colour": ("red", "")}


def test_columns_with_a_place_for_unknown_values_allow_all(tmp_path: Path) -> None:
    columns = [
        tab.categorical_column_with_vocabulary_list("a", ["x"], num_oov_buckets=1),
        tab.categorical_column_with_vocabulary_list("b", ["x", "y"], default_value=1),
        colours(tmp_path, num_oov_buckets=2),
        tab.categorical_column_with_hash_bucket("d", 9),
        tab.categorical_column_with_identity("e", 9),
        tab.bucketized_column(tab.numeric_column("f"), [1.0]),
    ]
    assert tab.strict_vocabularies(columns) == {}


def test_a_feature_that_another_column_reads_as_it_is_allows_all() -> None:
    for other in (
        tab.crossed_column(["size", "colour"], 9),
        tab.crossed_column([tab.crossed_column(["size", "zone"], 9), "colour"], 9),
        tab.categorical_column_with_hash_bucket("size", 9),
    ):
        assert tab.strict_vocabularies([SIZES, other]) == {}
    assert tab.strict_vocabularies([tab.crossed_column([SIZES, "colour"], 9)]) == {"size": ("S", "M", "")}


def test_two_vocabularies_of_a_feature_are_one() -> None:
    sizes = tab.sequence_categorical_column_with_vocabulary_list("size", ["M", "L"])
    weighted = tab.weighted_categorical_column(SIZES, "count")
    assert tab.strict_vocabularies([weighted, sizes]) == {"size": ("S", "M", "", "L")}


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentError, match="label and label_vocabulary go together"):
        tab.strict_vocabularies([SIZES], label="sold")
    with pytest.raises(ArgumentError, match=r"label should not be used as feature\. label: size"):
        tab.strict_vocabularies([SIZES], label="size", label_vocabulary=["S"])
    with pytest.raises(ArgumentError, match=r"must be FeatureColumn instances\. Given: size"):
        tab.strict_vocabularies(["size"])


def test_the_reader_refuses_what_the_columns_do_not_know(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("size,sold\nS,no\n,yes\nXL,no\nM,maybe\n")
    vocabularies = tab.strict_vocabularies([SIZES], label="sold", label_vocabulary=["no", "yes"])
    options: dict[str, Any] = {"shuffle": False, "label_name": "sold", "vocabularies": vocabularies}
    with pytest.raises(InputError, match=r"line 4: column 'size': unknown token 'XL'"):
        list(csv_input_fn(path, 9, **options)())
    iterator = csv_input_fn(path, 9, on_error="skip", **options)()
    ((features, labels),) = iterator
    assert iterator.bad_rows == 2
    assert labels.tolist() == [b"no", b"yes"]
    assert SIZES.host_ids(features).ids.tolist() == [[0], [-1]]
    assert np.asarray(features["size"]).tolist() == [b"S", b""]
