"""Tests of the errors of functions that make columns and estimators, in the words that people search for."""

import numpy as np
import pytest

import estimator_canned_tabular as tab
from estimator_canned_tabular.models.kmeans import KMeansOptions
from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.export import FixedLenFeature
from estimator_core.inputs import from_iterable
from estimator_heads import BinaryClassHead, RetrievalHead

X = tab.numeric_column("x")
C = tab.categorical_column_with_identity("c", 3)
SEQUENCE = tab.sequence_categorical_column_with_identity("s", 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tab.numeric_column(1), "key must be a string. Got: type <class 'int'>. Given key: 1."),
        (lambda: tab.numeric_column("a", 0), r"shape dimensions must be greater than 0. shape: \(0,\), key: a"),
        (lambda: tab.numeric_column("a", dtype="string"), "dtype must be convertible to float"),
        (lambda: tab.numeric_column("a", (2,), [1, 2, 3]), "shape of default_value must be equal"),
        (lambda: tab.numeric_column("a", normalizer_fn=3), "normalizer_fn must be a callable"),
        (lambda: tab.bucketized_column(X, [2, 1]), "boundaries must be a sorted list."),
        (lambda: tab.bucketized_column(X, [1, float("nan")]), r"boundaries must be numbers. Given: \[1, nan\]"),
        (lambda: tab.bucketized_column(C, [1]), "must be a column generated with numeric_column"),
        (lambda: tab.bucketized_column(tab.numeric_column("x", (2, 2)), [1]), "must be one-dimensional"),
        (lambda: tab.categorical_column_with_identity("c", 3, 5), r"default_value 5 not in range \[0, 3\), col"),
        (
            lambda: tab.categorical_column_with_hash_bucket("a", 0),
            "hash_bucket_size must be at least 1. hash_bucket_size: 0, key: a",
        ),
        (lambda: tab.categorical_column_with_hash_bucket("a", 9, "float32"), "dtype must be string or integer"),
        (
            lambda: tab.categorical_column_with_vocabulary_list("a", ["a", "a"]),
            r"Duplicate keys in vocabulary_list \['a', 'a'\], column_name: a",
        ),
        (
            lambda: tab.categorical_column_with_vocabulary_list("a", []),
            r"vocabulary_list \[\] must be non-empty, column_name: a",
        ),
        (
            lambda: tab.categorical_column_with_vocabulary_list("a", ["x"], default_value=0, num_oov_buckets=1),
            "Can't specify both num_oov_buckets and default_value in a.",
        ),
        (lambda: tab.categorical_column_with_vocabulary_file("a", "/no/such/file"), "There is no vocabulary file"),
        (lambda: tab.embedding_column(C, 0), "Invalid dimension 0."),
        (lambda: tab.embedding_column(C, 2, "max"), "combiner must be one of"),
        (lambda: tab.embedding_column(X, 2), "Input must be a CategoricalColumn"),
        (lambda: tab.crossed_column(["a"], 10), r"keys must be a list with length > 1. Given: \['a'\]"),
        (
            lambda: tab.crossed_column(["a", tab.categorical_column_with_hash_bucket("b", 3)], 10),
            "categorical_column_with_hash_bucket is not supported for crossing.",
        ),
        (lambda: tab.crossed_column(["a", X], 10), "Unsupported key type"),
        (lambda: tab.indicator_column("a"), "Unsupported input type. Input must be a CategoricalColumn. Given: a"),
        (
            lambda: tab.shared_embeddings([C, tab.categorical_column_with_identity("d", 4)], 2),
            "must have the same type and number of buckets",
        ),
        (
            lambda: tab.make_parse_example_spec([X, tab.categorical_column_with_hash_bucket("x", 3)]),
            "different parse_spec for key x",
        ),
        (lambda: tab.classifier_parse_example_spec([X], "x"), "label should not be used as feature. label_key: x"),
        (lambda: tab.regressor_parse_example_spec([X], "y", weight_column="x"), "weight_column should not be used"),
        (lambda: tab.LinearClassifier([]), "feature_columns must not be empty"),
        (lambda: tab.LinearClassifier([X, X]), "Duplicate feature column name"),
        (lambda: tab.LinearClassifier([X], sparse_combiner="max"), "sparse_combiner must be one of"),
        (lambda: tab.LinearClassifier([X], optimizer="Adamax"), "Unsupported optimizer name: Adamax"),
        (lambda: tab.LinearClassifier([X], n_classes=1), "n_classes must be an integer > 1"),
        (lambda: tab.DNNClassifier([2], [C]), "wrap a categorical column with an embedding_column"),
        (lambda: tab.DNNClassifier([2], [tab.embedding_column(SEQUENCE, 2)]), "is a sequence"),
        (lambda: tab.DNNClassifier([0], [X]), "hidden_units must be positive"),
        (lambda: tab.DNNClassifier(8, [X]), r"hidden_units must be a list .* given: 8. For one layer write \[64\]"),
        (lambda: tab.DNNClassifier("8", [X]), "hidden_units must be a list .* given: '8'"),
        (lambda: tab.DCNEstimator(BinaryClassHead(), [X], hidden_units=8), "hidden_units must be a list"),
        (
            lambda: tab.DNNClassifier([2], ["num"]),
            r"Given: 'num'. .* write numeric_column\('num'",
        ),
        (lambda: tab.LinearClassifier(["num"]), "Items of feature_columns must be feature columns. Given: 'num'"),
        (lambda: tab.LinearClassifier([None]), "must be feature columns. Given: None, of type NoneType. Make"),
        (lambda: tab.DNNClassifier([2], [X, 3]), "must be feature columns. Given: 3, of type int"),
        (lambda: tab.LinearRegressor("num"), r"feature_columns must be a list .* Given: 'num'. Put it in a list"),
        (
            lambda: tab.DNNRegressor([2], X),
            r"must be a list .* Given: NumericColumn.* Put it in a list",
        ),
        (lambda: tab.LinearClassifier(X), "feature_columns must be a list of feature columns"),
        (lambda: tab.DNNLinearCombinedClassifier(linear_feature_columns=X), "linear_feature_columns must be a list"),
        (lambda: tab.TwoTowerEstimator(RetrievalHead(4), X, [X], 4), "query_columns must be a list"),
        (lambda: tab.make_parse_example_spec(X), "feature_columns must be a list"),
        (lambda: tab.DNNClassifier([2], [X], dropout=1.0), r"dropout must lie in \[0, 1\)"),
        (lambda: tab.DNNLinearCombinedClassifier(), "Either linear_feature_columns or dnn_feature_columns"),
        (
            lambda: tab.DNNLinearCombinedClassifier(dnn_feature_columns=[X]),
            "dnn_feature_columns and dnn_hidden_units must be defined together",
        ),
        (lambda: tab.RNNClassifier([X], units=2), "Items of sequence_feature_columns"),
        (lambda: tab.RNNClassifier([tab.embedding_column(SEQUENCE, 2)]), "units must be a positive integer"),
        (
            lambda: tab.RNNClassifier([tab.embedding_column(SEQUENCE, 2)], units=2, cell_type="tree"),
            "Supported strings are",
        ),
        (
            lambda: tab.RNNEstimator(
                BinaryClassHead(), [tab.embedding_column(SEQUENCE, 2)], units=2, return_sequences=True
            ),
            "must be a `SequentialHeadWrapper`",
        ),
        (lambda: tab.KMeans(2, initial_clusters="best"), "Unsupported initialization algorithm"),
        (lambda: tab.TwoTowerEstimator(RetrievalHead(4), [X], [X], 8), "head expects 8 logits"),
        (lambda: tab.DLRMEstimator(BinaryClassHead(), [X], [tab.indicator_column(C)]), "embeddings of one dimension"),
    ],
)
def test_refused(make, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        make()


def test_sizes_may_be_numbers_of_numpy():
    assert tab.DNNClassifier(np.array([4, 2]), [X]) is not None
    assert tab.DNNLinearCombinedClassifier(dnn_feature_columns=[X], dnn_hidden_units=np.array([4, 2])) is not None
    with pytest.raises(ArgumentError, match="hidden_units must be positive"):
        tab.DNNClassifier(np.array([4, 0]), [X])


def test_a_vocabulary_file_with_a_word_twice(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("a\nb\na\n")
    with pytest.raises(ArgumentError, match="b'a' is in two lines"):
        tab.categorical_column_with_vocabulary_file("c", path)
    with pytest.raises(ArgumentError, match="has 3 lines, fewer than vocabulary_size=4"):
        tab.categorical_column_with_vocabulary_file("c", path, 4)
    assert tab.categorical_column_with_vocabulary_file("c", path, 2).num_buckets == 2
    path.write_text("\n\n")
    with pytest.raises(ArgumentError, match="holds no word: a vocabulary file has one word in each line"):
        tab.categorical_column_with_vocabulary_file("c", path)


def test_parse_specs():
    fixed = FixedLenFeature
    columns = [
        tab.numeric_column("x", 2, default_value=1.5),
        tab.embedding_column(tab.categorical_column_with_hash_bucket("c", 9), 2),
        tab.crossed_column(["a", tab.bucketized_column(tab.numeric_column("age"), [1.0])], 5),
        tab.weighted_categorical_column(tab.categorical_column_with_identity("i", 3), "w"),
    ]
    spec = tab.classifier_parse_example_spec(columns, "y", weight_column="importance")
    assert spec["x"] == fixed((2,), "float32", (1.5, 1.5))
    assert spec["age"] == spec["importance"] == fixed((1,), "float32", None)
    assert {name: one.dtype for name, one in spec.items() if not hasattr(one, "shape")} == {
        "c": "string",
        "a": "string",
        "i": "int64",
        "w": "float32",
    }
    assert spec["y"] == fixed((1,), "int64", None)


@pytest.mark.parametrize("count", [2.5, 2.0, True, "2"])
def test_counts_that_are_no_integers_are_refused(count):
    """2.5 buckets were 2, and True was 1. A number of numpy is an integer."""
    for make in (
        lambda n: tab.categorical_column_with_hash_bucket("a", n),
        lambda n: tab.categorical_column_with_identity("a", n),
        lambda n: tab.categorical_column_with_hash_bucket("a", 5, max_values=n),
        lambda n: tab.crossed_column(["a", "b"], n),
        lambda n: tab.embedding_column(C, n),
        lambda n: KMeansOptions(num_clusters=n),
        lambda n: from_iterable(list, batch_size=n),
    ):
        assert make(np.int64(2))
        with pytest.raises((ArgumentError, ArgumentTypeError), match=r"must be an? |Invalid dim"):
            make(count)
