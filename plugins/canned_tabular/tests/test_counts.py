"""Tests that every count of a public function is a whole number: no truth value, float, array or huge number."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_canned_tabular as ct
from estimator_core.errors import EstimatorError
from estimator_heads import RegressionHead, RetrievalHead

_NUMBERS = [ct.numeric_column("x")]
_SEQUENCES = [ct.sequence_numeric_column("x")]


def _of_file(size: Any) -> Any:
    path = Path(tempfile.mkdtemp(), "words.txt")
    path.write_text("a\nb\nc\n")
    return ct.categorical_column_with_vocabulary_file("c", path, vocabulary_size=size)


COUNTS: dict[str, Callable[[Any], Any]] = {
    "num_oov_buckets": lambda v: ct.categorical_column_with_vocabulary_list("c", ["a"], num_oov_buckets=v),
    "vocabulary_size": _of_file,
    "max_values": lambda v: ct.categorical_column_with_identity("c", 3, max_values=v),
    "shape": lambda v: ct.numeric_column("x", shape=v),
    "dimension": lambda v: ct.embedding_column(ct.categorical_column_with_identity("c", 3), v),
    "hash_key": lambda v: ct.crossed_column(["a", "b"], 5, hash_key=v),
    "cross_layers": lambda v: ct.dcn_model_fn(RegressionHead(), _NUMBERS, cross_layers=v),
    "projection_dim": lambda v: ct.dcn_model_fn(RegressionHead(), _NUMBERS, projection_dim=v),
    "towers": lambda v: ct.two_tower_model_fn(RetrievalHead(2), _NUMBERS, _NUMBERS, dimension=v),
    "units": lambda v: ct.rnn_model_fn(RegressionHead(), _SEQUENCES, units=v),
    "units of a layer": lambda v: ct.rnn_model_fn(RegressionHead(), _SEQUENCES, units=[v]),
    "GRUCell": lambda v: ct.GRUCell(v),
    "LSTMCell": lambda v: ct.LSTMCell(v),
    "SimpleRNNCell": lambda v: ct.SimpleRNNCell(v),
    "hidden_units": lambda v: ct.dnn_model_fn(RegressionHead(), [v], _NUMBERS),
    "num_clusters": lambda v: ct.KMeansOptions(num_clusters=v),
    "max_size": lambda v: ct.frequent_values([["a", "b", "a", "b"]], max_size=v),
    "min_count": lambda v: ct.frequent_values([["a", "b", "a", "b"]], min_count=v),
}


@pytest.mark.parametrize(
    "value", [True, 2.0, 10**400, "2", np.array(2.0)], ids=["bool", "float", "huge", "text", "array"]
)
@pytest.mark.parametrize("count", COUNTS)
def test_a_count_that_is_not_a_whole_number_is_refused(count: str, value: Any) -> None:
    with pytest.raises(EstimatorError) as refused:
        COUNTS[count](value)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("count", COUNTS)
def test_an_integer_of_numpy_is_a_count(count: str) -> None:
    COUNTS[count](np.int64(2))
