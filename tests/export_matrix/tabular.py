"""Cases of every canned tabular model with every kind of column."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import estimator_canned_tabular as tab
from estimator_heads import BinaryClassHead, RegressionHead
from tests.export_matrix.cases import ROWS, Case, Sample, config, in_turn, trained

RNG = np.random.default_rng(2)
CITIES = ["Rome", "Oslo", "Århus", ""]
FEATURES = {
    "age": RNG.normal(size=(ROWS, 1)).astype(np.float32),
    "point": RNG.normal(size=(ROWS, 2)).astype(np.float32),
    "city": RNG.choice([*CITIES, "elsewhere"], (ROWS, 1)).astype(object),
    "town": RNG.choice([*CITIES, "elsewhere"], (ROWS, 1)).astype(object),
    "port": RNG.choice([*CITIES, "elsewhere"], (ROWS, 1)).astype(object),
    "code": RNG.integers(-1, 6, (ROWS, 1)),
    "tags": RNG.choice(["red", "blue", "other", ""], (ROWS, 3)).astype(object),
    "weights": RNG.random((ROWS, 3)).astype(np.float32),
    "day": RNG.integers(-1, 6, (ROWS, 1)),
    "user": RNG.integers(0, 9, (ROWS, 1)),
    "steps": RNG.integers(0, 6, (ROWS, 4)),
    "words": RNG.choice(["deck", "bar", "bridge"], (ROWS, 4)).astype(object),
    "speeds": RNG.normal(size=(ROWS, 4)).astype(np.float32),
}
BINARY = (FEATURES["age"] > 0).astype(np.int64)
CLASSES = RNG.choice(["red", "green", "blue"], (ROWS, 1))
NUMBER = FEATURES["age"] * 2


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of column.

    Attributes:
        column: makes a column.
        features: the features that it reads.
        categorical: whether it is categorical, so that dense models need it embedded.
    """

    column: Callable[[], Any]
    features: tuple[str, ...]
    categorical: bool = True


@functools.cache
def vocabulary_file() -> str:
    """Returns the path of a file with the cities."""
    path = Path(tempfile.mkdtemp(prefix="export-matrix-")) / "cities.txt"
    path.write_text("Rome\nOslo\n", encoding="utf-8")
    return str(path)


def city() -> Any:
    return tab.categorical_column_with_vocabulary_list("city", ["Rome", "Århus"], num_oov_buckets=1)


def day() -> Any:
    return tab.categorical_column_with_identity("day", 6, default_value=0)


def tags() -> Any:
    return tab.categorical_column_with_vocabulary_list("tags", ["red", "blue"])


def ages() -> Any:
    return tab.bucketized_column(tab.numeric_column("age"), [-1.0, 0.0, 1.0])


KINDS: dict[str, Kind] = {
    "numeric": Kind(column=lambda: tab.numeric_column("point", 2), features=("point",), categorical=False),
    "bucketized": Kind(column=ages, features=("age",), categorical=False),
    "identity": Kind(column=day, features=("day",)),
    "vocabulary list": Kind(column=city, features=("city",)),
    "vocabulary list of integers": Kind(
        column=lambda: tab.categorical_column_with_vocabulary_list("code", [1, 5, 3]), features=("code",)
    ),
    "vocabulary file": Kind(
        column=lambda: tab.categorical_column_with_vocabulary_file("town", vocabulary_file(), num_oov_buckets=1),
        features=("town",),
    ),
    "several values": Kind(column=tags, features=("tags",)),
    "weighted": Kind(column=lambda: tab.weighted_categorical_column(tags(), "weights"), features=("tags", "weights")),
    "crossed integers": Kind(
        column=lambda: tab.crossed_column([day(), ages(), city()], 20), features=("day", "age", "city")
    ),
    "vocabulary with hashed rest": Kind(
        column=lambda: tab.categorical_column_with_vocabulary_list("city", ["Rome"], num_oov_buckets=3),
        features=("city",),
    ),
    "hashed text": Kind(column=lambda: tab.categorical_column_with_hash_bucket("port", 10), features=("port",)),
    "hashed integers": Kind(
        column=lambda: tab.categorical_column_with_hash_bucket("user", 10, dtype="int64"), features=("user",)
    ),
    "crossed text": Kind(column=lambda: tab.crossed_column([ages(), "city"], 20), features=("age", "city")),
}
#: Columns that an ONNX graph can hold only with operators of onnxruntime-extensions.
HASHED = ("vocabulary with hashed rest", "hashed text", "hashed integers", "crossed text")
PLAIN = tuple(name for name in KINDS if name not in HASHED)
SEQUENCES: dict[str, Kind] = {
    "sequence of identities": Kind(
        column=lambda: tab.sequence_categorical_column_with_identity("steps", 6), features=("steps",)
    ),
    "sequence of a vocabulary": Kind(
        column=lambda: tab.sequence_categorical_column_with_vocabulary_list(
            "words", ["deck", "bar"], num_oov_buckets=1
        ),
        features=("words",),
    ),
    "sequence of hashes": Kind(
        column=lambda: tab.sequence_categorical_column_with_hash_bucket("words", 6), features=("words",)
    ),
    "sequence of numbers": Kind(
        column=lambda: tab.sequence_numeric_column("speeds"), features=("speeds",), categorical=False
    ),
}
SEQUENCES_WITHOUT = ("sequence of identities", "sequence of a vocabulary")
SEQUENCES_WITH = ("sequence of hashes", "sequence of numbers")
WRAPPED: dict[str, Callable[[Any], Any]] = {
    "indicator": tab.indicator_column,
    "embedding": lambda column: tab.embedding_column(column, 3),
    "embedding, sqrtn": lambda column: tab.embedding_column(column, 3, combiner="sqrtn"),
}


def wide(kinds: Sequence[str]) -> list[Any]:
    """Returns columns in the form that linear models take."""
    return [KINDS[name].column() for name in kinds]


def embedded(kinds: Sequence[str]) -> list[Any]:
    """Returns embeddings of the same dimension."""
    return [tab.embedding_column(KINDS[name].column(), 3) for name in kinds if KINDS[name].categorical]


def deep(kinds: Sequence[str]) -> list[Any]:
    """Returns columns in the form that dense models take: with each kind of embedding and indicator in turn."""
    found: list[Any] = []
    for place, name in enumerate(kinds):
        kind, wrap = KINDS[name], list(WRAPPED.values())[place % len(WRAPPED)]
        found.append(wrap(kind.column()) if kind.categorical else kind.column())
    if {"identity", "vocabulary list of integers"} <= set(kinds):
        found += tab.shared_embeddings([day(), tab.categorical_column_with_identity("user", 6, default_value=0)], 2)
    return found


def recurrent(kinds: Sequence[str]) -> list[Any]:
    return [
        tab.embedding_column(SEQUENCES[name].column(), 3) if SEQUENCES[name].categorical else SEQUENCES[name].column()
        for name in kinds
    ]


NAMES = {"n_classes": 3, "label_vocabulary": ["red", "green", "blue"]}
NUMBERS = [tab.numeric_column("age"), tab.numeric_column("point", 2)]


def combined(kinds: Sequence[str]) -> dict[str, Any]:
    return {"linear_feature_columns": wide(kinds), "dnn_feature_columns": deep(kinds), "dnn_hidden_units": [4]}


#: An estimator of some kinds of columns, and its labels.
MODELS: dict[str, tuple[Callable[[Sequence[str]], Any], Any]] = {
    "LinearClassifier": (lambda kinds: tab.LinearClassifier(wide(kinds), config=config(), **NAMES), CLASSES),
    "LinearRegressor": (lambda kinds: tab.LinearRegressor(wide(kinds), config=config()), NUMBER),
    "DNNClassifier": (
        lambda kinds: tab.DNNClassifier([4], deep(kinds), batch_norm=True, dropout=0.2, config=config()),
        BINARY,
    ),
    "DNNRegressor": (lambda kinds: tab.DNNRegressor([4], deep(kinds), config=config()), NUMBER),
    "DNNLinearCombinedClassifier": (
        lambda kinds: tab.DNNLinearCombinedClassifier(**combined(kinds), config=config()),
        BINARY,
    ),
    "DNNLinearCombinedRegressor": (
        lambda kinds: tab.DNNLinearCombinedRegressor(**combined(kinds), config=config()),
        NUMBER,
    ),
    "KMeans": (lambda kinds: tab.KMeans(2, feature_columns=deep(kinds), config=config()), None),
    "KMeans of angles": (
        lambda kinds: tab.KMeans(2, feature_columns=deep(kinds), distance_metric="cosine", config=config()),
        None,
    ),
    "DCNEstimator": (
        lambda kinds: tab.DCNEstimator(BinaryClassHead(), deep(kinds), hidden_units=[4], config=config()),
        BINARY,
    ),
    "DLRMEstimator": (
        lambda kinds: tab.DLRMEstimator(BinaryClassHead(), NUMBERS, embedded(kinds), config=config()),
        BINARY,
    ),
    "TwoTowerEstimator": (
        lambda kinds: tab.TwoTowerEstimator(BinaryClassHead(), deep(kinds), embedded(kinds), 4, config=config()),
        BINARY,
    ),
}
RECURRENT: dict[str, tuple[Callable[[Sequence[str]], Any], Any]] = {
    "RNNClassifier, LSTM": (
        lambda kinds: tab.RNNClassifier(recurrent(kinds), NUMBERS, [4], "lstm", config=config()),
        BINARY,
    ),
    "RNNClassifier, GRU": (
        lambda kinds: tab.RNNClassifier(recurrent(kinds), NUMBERS, [4], "gru", config=config(), **NAMES),
        CLASSES,
    ),
    "RNNEstimator, simple": (
        lambda kinds: tab.RNNEstimator(
            RegressionHead(), recurrent(kinds), NUMBERS, [4, 4], "simple_rnn", config=config()
        ),
        NUMBER,
    ),
}
BASELINES: dict[str, tuple[Callable[[Sequence[str]], Any], Any]] = {
    "BaselineClassifier": (lambda kinds: tab.BaselineClassifier(config=config(), **NAMES), CLASSES),
    "BaselineRegressor": (lambda kinds: tab.BaselineRegressor(config=config()), NUMBER),
}
EVERY = MODELS | RECURRENT | BASELINES
_ALONE = "LinearClassifier"


def make(model: str, kinds: Sequence[str]) -> Sample:
    """Returns a trained model of some kinds of columns."""
    estimator, labels = EVERY[model]
    known = {**KINDS, **SEQUENCES}
    read = {name for kind in kinds for name in known[kind].features} or {"age"}
    if model in RECURRENT or model == "DLRMEstimator":
        read |= {"age", "point"}
    if {"identity", "vocabulary list of integers"} <= set(kinds):
        read.add("user")
    features = {name: value for name, value in FEATURES.items() if name in read}
    return trained(estimator(kinds), features, labels)


def cases() -> list[Case]:
    """Returns every model on the columns of all formats and on the others, and every kind of column alone."""
    found: list[Case] = []

    def add(group: str, model: str, title: str, kinds: Sequence[str], cut: tuple[str, str] | None) -> None:
        row = (title, model) if group == "columns" else (model, title)
        found.append(Case(group=group, row=row, make=functools.partial(make, model, tuple(kinds)), cut=cut))

    for place, model in enumerate(MODELS):
        add("tabular", model, "columns without hashes", PLAIN, in_turn(place))
        add("tabular", model, "columns with hashes", HASHED, ("onnx", "infer"))
    for place, model in enumerate(RECURRENT):
        add("tabular", model, "sequences without hashes", SEQUENCES_WITHOUT, in_turn(place))
        add("tabular", model, "sequences with hashes", SEQUENCES_WITH, ("onnx", "infer"))
    for place, model in enumerate(BASELINES):
        add("tabular", model, "no columns", (), in_turn(place))
    for kind in KINDS:
        add("columns", _ALONE, kind, (kind,), ("onnx" if kind in HASHED else "saved_model", "infer"))
    for kind in SEQUENCES:
        add("columns", "RNNClassifier, LSTM", kind, (kind,), ("onnx", "infer"))
    return found
