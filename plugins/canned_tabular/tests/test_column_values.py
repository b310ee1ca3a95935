"""Tests of the values in section 5 of the reference, run with tf.estimator 2.15.1 (includes cases 57 to 62)."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_canned_tabular.host.plan import FeaturePlan
from estimator_canned_tabular.host.values import numbers_of
from estimator_canned_tabular.layers.inputs import with_first
from estimator_canned_tabular.layers.sequence_features import sequence_features
from plugins.canned_tabular.tests.columns_by_hand import host_ids, outputs

WORDS = tab.categorical_column_with_vocabulary_list("c", ["R", "G", "B"])
IDENTITY = tab.categorical_column_with_identity("c", 3)


def test_a_normalizer(tmp_path):
    column = tab.numeric_column("x", normalizer_fn=lambda x: x - 3)
    assert outputs([column], {"x": [[1.0], [5.0]]}, tmp_path=tmp_path).tolist() == [[-2.0], [2.0]]


def test_57_buckets(tmp_path):
    column = tab.bucketized_column(tab.numeric_column("p"), [0, 10, 100])
    values = np.array([[-1.0], [0.0], [9.99], [10.0], [100.0], [1000.0]], np.float32)
    expected = [0, 1, 1, 2, 3, 3]
    assert outputs([column], {"p": values}, tmp_path=tmp_path).argmax(1).tolist() == expected
    assert host_ids(column, p=values) == [[bucket] for bucket in expected]


def test_buckets_of_several_places():
    column = tab.bucketized_column(tab.numeric_column("p", 2), [0.0])
    assert host_ids(column, p=[[-1.0, 1.0], [2.0, 0.0]]) == [[0, 3], [1, 3]]
    with pytest.raises(tab.FeatureColumnError, match="Feature 'p' holds nan in row 1: it is missing"):
        host_ids(column, p=[[-1.0, 1.0], [np.nan, 0.0]])


def test_58_words_unknown_words_and_none():
    assert host_ids(WORDS, c=["R", "X", "", "B"]) == [[0], [-1], [-1], [2]]
    with_default = tab.categorical_column_with_vocabulary_list("c", ["R", "G", "B"], default_value=1)
    assert host_ids(with_default, c=["R", "X", ""]) == [[0], [1], [-1]]
    hashed = tab.categorical_column_with_vocabulary_list("c", ["R", "G", "B"], num_oov_buckets=10)
    assert host_ids(hashed, c=["a", "b", "hello", "wide", "G", ""]) == [[12], [5], [9], [10], [1], [-1]]


def test_59_hash_buckets():
    words = ["a", "b", "hello", "wide"]
    assert host_ids(tab.categorical_column_with_hash_bucket("c", 10), c=words) == [[9], [2], [6], [7]]
    assert host_ids(tab.categorical_column_with_hash_bucket("c", 100), c=words) == [[39], [22], [96], [37]]
    numbers = tab.categorical_column_with_hash_bucket("c", 10, "int64")
    assert host_ids(numbers, c=[1, 2, 3, 101]) == [[9], [9], [1], [3]]


def test_60_crossed():
    assert host_ids(tab.crossed_column(["a", "b"], 10), a=["x", "y"], b=["1", "2"]) == [[5], [4]]


def test_61_weighted(tmp_path):
    column = tab.indicator_column(tab.weighted_categorical_column(IDENTITY, "w"))
    assert outputs([column], {"c": [[0, 2]], "w": [[0.5, 2.0]]}, tmp_path=tmp_path).tolist() == [[0.5, 0.0, 2.0]]


TABLE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@pytest.mark.parametrize(
    ("combiner", "expected"), [("mean", [3.0, 4.0]), ("sum", [6.0, 8.0]), ("sqrtn", [4.2426407, 5.6568542])]
)
def test_62_combiners_and_an_empty_row(tmp_path, combiner, expected):
    table = np.asarray(TABLE, np.float32)
    column = tab.embedding_column(IDENTITY, 2, combiner=combiner, initializer=lambda *_: table)
    found = outputs([column], {"c": [[0, 2], [-1, -1]]}, tmp_path=tmp_path)
    np.testing.assert_allclose(found, [expected, [0.0, 0.0]], rtol=1e-6)


def test_indicator_counts(tmp_path):
    column = tab.indicator_column(WORDS)
    assert outputs([column], {"c": [["R", "R", "B"]]}, tmp_path=tmp_path).tolist() == [[2.0, 0.0, 1.0]]


def test_an_example_without_a_word_has_the_bucket_of_missing_words(tmp_path):
    column = tab.indicator_column(
        tab.categorical_column_with_vocabulary_list("c", ["R", "G"], missing_bucket=True, max_values=3)
    )
    rows = {"c": np.array([["R", "G", "R"], ["", "", ""], ["", "G", ""]], object)}
    assert outputs([column], rows, tmp_path=tmp_path / "m").tolist() == [[2, 1, 0], [0, 0, 1], [0, 1, 0]]
    program = str(jax.make_jaxpr(lambda ids: with_first(ids, 2))(np.zeros((3, 3), np.int32)))
    assert "scatter" not in program, "jax2onnx converts no scatter along the batch"


def test_an_identity_out_of_range_is_left_out_or_the_default():
    assert host_ids(IDENTITY, c=[0, 3, -1, 2**40]) == [[0], [-1], [-1], [-1]]
    assert host_ids(tab.categorical_column_with_identity("c", 3, 1), c=[0, 3, -1]) == [[0], [1], [-1]]


def test_columns_are_put_together_by_name(tmp_path):
    columns = [tab.numeric_column("z"), tab.numeric_column("a")]
    assert outputs(columns, {"z": [[1.0]], "a": [[2.0]]}, tmp_path=tmp_path).tolist() == [[2.0, 1.0]]


def test_names_and_equality():
    buckets = tab.bucketized_column(tab.numeric_column("p"), [0.0])
    assert buckets.name == "p_bucketized"
    assert tab.indicator_column(WORDS).name == "c_indicator"
    assert tab.embedding_column(WORDS, 2).name == "c_embedding"
    assert tab.crossed_column(["b", "a"], 5).name == "a_X_b"
    assert tab.weighted_categorical_column(WORDS, "w").name == "c_weighted_by_w"
    assert tab.bucketized_column(tab.numeric_column("p"), [0.0]) == buckets
    assert len({buckets, tab.bucketized_column(tab.numeric_column("p"), [0.0])}) == 1


def test_max_norm(tmp_path):
    column = tab.embedding_column(
        IDENTITY, 2, initializer=lambda *_: np.asarray([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]], np.float32), max_norm=1.0
    )
    found = outputs([column], {"c": [[0], [1], [2]]}, tmp_path=tmp_path)
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]], rtol=1e-6)


def test_shared_tables(tmp_path):
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    other = tab.categorical_column_with_identity("d", 3)
    columns = tab.shared_embeddings([IDENTITY, other], 2, initializer=lambda *_: table)
    assert [column.name for column in columns] == ["c_shared_embedding", "d_shared_embedding"]
    assert columns[0].table.collection == "c_d_shared_embedding"
    found = outputs(columns, {"c": [[0], [1]], "d": [[1], [2]]}, tmp_path=tmp_path)
    assert found.tolist() == [[0, 1, 2, 3], [2, 3, 4, 5]]


def test_a_hash_key_of_0_is_the_default_key_as_in_the_original():
    batch = {"a": np.array(["x", "y"]), "b": np.array(["1", "2"])}
    plain, zero, other = (tab.crossed_column(["a", "b"], 1000, key).host_ids(batch).ids for key in (None, 0, 7))
    np.testing.assert_array_equal(zero, plain)
    assert (other != plain).any()


CROSSED = {"s": np.array(["x", "", "y"]), "v": np.array(["a", "zz", ""]), "i": np.array([1, 2, 3])}
KNOWN = tab.categorical_column_with_vocabulary_list("v", ["a", "b"])


@pytest.mark.parametrize(
    ("keys", "key", "expected"),
    [
        (["s", KNOWN], None, [782970, 969889, -1]),
        ([KNOWN, "s"], 0, [782970, 969889, -1]),
        ([KNOWN, "s"], 5, [887185, 646716, -1]),
        ([KNOWN, tab.categorical_column_with_identity("i", 4)], 0, [200369, 646049, -1]),
        ([KNOWN, tab.categorical_column_with_identity("i", 4)], 5, [368148, 310819, -1]),
    ],
)
def test_a_cross_of_dense_features_and_unknown_words_has_the_buckets_of_tensorflow_2_15_1(keys, key, expected):
    crossed = tab.crossed_column(keys, 1_000_003, hash_key=key)
    assert crossed.host_ids(CROSSED).ids.ravel().tolist() == expected


def test_a_cross_of_any_number_of_values_leaves_empty_texts_out():
    several = tab.crossed_column(["s", KNOWN], 1_000_003, max_values=1)
    assert several.host_ids(CROSSED).ids.ravel().tolist()[1:] == [-1, -1]
    dense = tab.crossed_column(["s", KNOWN], 1_000_003, max_values=1, dense_strings=True)
    assert dense.host_ids(CROSSED).ids.ravel().tolist() == [782970, 969889, -1]


def test_a_mark_of_unicode_is_no_part_of_the_first_word(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    column = tab.categorical_column_with_vocabulary_file("c", path)
    assert host_ids(column, c=["a", "b", "c"]) == [[0], [1], [-1]]


def test_missing_words_of_pandas():
    pandas = pytest.importorskip("pandas")
    words = np.array(["R", pandas.NA, pandas.NaT, None, float("nan"), "B"], object)
    assert host_ids(WORDS, c=words) == [[0], [-1], [-1], [-1], [-1], [2]]


@pytest.mark.parametrize(
    "column",
    [
        tab.categorical_column_with_hash_bucket("c", 10, dtype="int64"),
        tab.categorical_column_with_vocabulary_list("c", [1, 2], num_oov_buckets=1),
        IDENTITY,
    ],
)
@pytest.mark.parametrize(
    "values",
    [
        np.array([[7, 8], [1, 2**63]], np.uint64),
        np.array([[7, 8], [1, 2**64 - 1]], np.uint64),  # it was read as -1, which means no value
        np.array([[7, 8], [1, 2**70]], object),
        np.array([[7, 8], [1, -(2**63) - 1]], object),
    ],
)
def test_an_integer_beyond_int64_is_no_other_id(column, values):
    with pytest.raises(ec.errors.InputError, match=rf"^Feature 'c' holds {values[1, 1]} in row 1 of the batch, which"):
        host_ids(column, c=values)
    smaller = np.where(values == values[1, 1], 2**63 - 1, values)
    assert host_ids(column, c=smaller) == host_ids(column, c=smaller.astype(np.int64))


def test_half_a_surrogate_pair_is_refused_by_feature_and_row():
    with pytest.raises(ec.errors.InputError, match=r"^Feature 'c' holds 'a\\ud800' in row 1 of the batch, which has"):
        host_ids(WORDS, c=np.array(["R", "a\ud800"], object))


def test_a_weight_of_a_value_must_be_finite():
    column = tab.weighted_categorical_column(WORDS, "w")
    words = np.array(["R", "", "B"])
    with pytest.raises(
        tab.FeatureColumnError, match=r"Feature 'w' holds nan in row 2 of the batch: the weight of a value"
    ):
        column.host_ids({"c": words, "w": np.array([1.0, 1.0, np.nan])})
    assert column.host_ids({"c": words, "w": np.array([1.0, np.nan, 2.0])}).ids.tolist() == [[0], [-1], [2]]


def test_a_number_of_a_sequence_must_be_finite():
    steps = {"s": np.array([[1.0, 2.0], [3.0, np.inf]])}
    with pytest.raises(
        tab.FeatureColumnError, match=r"Feature 's' holds inf in row 1 of the batch: a number of a sequence"
    ):
        tab.sequence_numeric_column("s").host_numbers(steps)
    replaced = tab.sequence_numeric_column("s", normalizer_fn=lambda numbers: numbers.clip(0, 5))
    assert replaced.host_numbers(steps)[1].tolist() == [2, 2]
    shorter = {"s": np.array([[1.0], [2.0, 3.0]], object)}
    assert tab.sequence_numeric_column("s", default_value=np.nan).host_numbers(shorter)[1].tolist() == [1, 2]


def test_a_sequence_of_numbers_ends_where_its_array_is_filled_up():
    """The `fill` values at the end of a row end the sequence, in arrays of any width. A 0 before the end is a step."""
    column = tab.sequence_numeric_column("s", default_value=0.5, max_values=3, fill=0.0)
    for width in (3, 4, 8):
        array = np.zeros((4, width))
        array[:, :3] = [[1, 0, 2], [0, 3, 0], [0, 0, 0], [4, 0, 0]]
        numbers, lengths = column.host_numbers({"s": array})
        assert lengths.tolist() == [3, 2, 0, 1]
        assert numbers[..., 0].tolist() == [[1, 0, 2], [0, 3, 0.5], [0.5, 0.5, 0.5], [4, 0.5, 0.5]]
    assert column.host_numbers({"s": lists([1.0, 0.0], [0.0])})[1].tolist() == [2, 1]
    with pytest.raises(tab.FeatureColumnError, match="'s' has 4 values, more than 3"):
        column.host_numbers({"s": np.array([[1.0, 2.0, 3.0, 4.0]])})


def test_steps_of_two_numbers_end_where_both_are_filled_up():
    column = tab.sequence_numeric_column("s", shape=2, fill=0.0)
    assert column.host_numbers({"s": np.array([[1.0, 0.0, 2.0, 0.0], [1.0, 0.0, 0.0, 0.0]])})[1].tolist() == [2, 1]


def test_the_fill_of_a_sequence_is_refused_where_it_cannot_hold():
    with pytest.raises(ec.errors.ArgumentError, match=r"fill must be a finite number. Given: nan, key: s"):
        tab.sequence_numeric_column("s", fill=np.nan)
    (transform,) = tab.FeaturePlan.of([tab.sequence_numeric_column("s", fill=0.0)]).transforms()
    with pytest.raises(ec.errors.ExportError, match=r"'s' end where fill= begins.*Export as stablehlo"):
        transform.program({"s": ec.export.Feature((None, 4), "float32")})


FLOATS = [[1.5], [2.0, -1.0, 3.0], [0.5, 4.0], [1.0, 2.0, 3.0, 4.0, 5.0]]


@pytest.mark.plugins
@pytest.mark.parametrize(("dtype", "fill"), [("float32", 0.0), ("int64", -1.0)])
def test_sequences_of_numbers_in_a_file_are_as_long_as_in_memory(tmp_path, dtype, fill):
    """Their length was the length of the longest row of the batch, rounded up to a power of two."""
    from estimator_inputs import VarLenFeature, example_class, tfrecord_input_fn, write_tfrecord

    rows = [[1], [2, -1, 3], [5, 4], [1, 2, 3, 4, 0]] if dtype == "int64" else FLOATS
    records = [example_class()() for _ in rows]
    for record, row in zip(records, rows, strict=True):
        feature = record.features.feature["s"]
        (feature.float_list if dtype == "float32" else feature.int64_list).value.extend(row)
    write_tfrecord(tmp_path / "rows.tfrecord", [record.SerializeToString() for record in records])
    column = tab.sequence_numeric_column("s", max_values=6, fill=fill)
    spec = {"s": VarLenFeature(dtype)}
    for size in (1, 4):
        batches = list(tfrecord_input_fn(tmp_path / "rows.tfrecord", size, spec, shuffle=False)())
        found = [column.host_numbers(batch) for batch in batches]
        expected = column.host_numbers({"s": lists(*rows)})
        np.testing.assert_array_equal(np.concatenate([numbers for numbers, _ in found]), expected[0])
        assert np.concatenate([lengths for _, lengths in found]).tolist() == [1, 3, 2, 5]


def test_a_finite_number_of_a_sequence_does_not_become_infinite():
    """With a normalizer_fn, which may replace an infinite number, it silently became infinite."""
    column = tab.sequence_numeric_column("s", normalizer_fn=lambda numbers: numbers.clip(0, 5))
    for steps in (np.array([[1.0], [1e300]]), lists([1.0], [2.0, 10**400]), lists([1.0], [-1e39, np.inf])):
        with pytest.raises(tab.FeatureColumnError, match=r"'s' holds .* in row 1 of the batch, which is infinite"):
            column.host_numbers({"s": steps})
    assert column.host_numbers({"s": np.array([[1.0], [np.inf]])})[0][1, 0, 0] == np.inf


def test_what_fills_a_sequence_up_is_not_normalised():
    """TensorFlow's `SequenceFeatures` does the same. The logarithm of the filling was -inf."""
    column = tab.sequence_numeric_column("s", normalizer_fn=jnp.log, max_values=3)
    plan = FeaturePlan.of((column,))
    numbers, lengths = column.host_numbers({"s": lists([2.0, 4.0], [8.0])})
    features = {f"{plan.outputs[column]}.numbers": numbers, f"{plan.outputs[column]}.lengths": lengths}
    steps, _ = sequence_features([column], features, plan, scope="", row_sparse=False)
    expected = [[0.6931472, 1.3862944, 0.0], [2.0794415, 0.0, 0.0]]
    np.testing.assert_allclose(steps[:, :, 0], expected, rtol=1e-6)


def lists(*rows):
    """Rows of different lengths."""
    found = np.empty(len(rows), object)
    found[:] = rows
    return found


@pytest.mark.parametrize(
    "weights",
    [np.array([1.0, 2.0], np.float32), np.array([[1.0], [2.0]]), lists([1.0], [2.0, 3.0])],
    ids=["one_an_example", "one_place", "lists"],
)
def test_each_value_needs_a_weight(weights):
    column = tab.weighted_categorical_column(WORDS, "w")
    with pytest.raises(tab.FeatureColumnError, match="Feature 'w' has 1 weights in row 0 of the batch, fewer than 'c'"):
        column.host_ids({"c": np.array([["R", "G"], ["B", ""]]), "w": weights})
    found = column.host_ids({"c": np.array([["R", ""], ["B", ""]]), "w": weights})
    assert found.weights[:, 0].tolist() == [1.0, 2.0]


@pytest.mark.plugins
@pytest.mark.parametrize("neighbour", [[3.0], [3.0, 4.0], [3.0, 4.0, 5.0, 6.0, 7.0]], ids=len)
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_a_missing_weight_of_a_file_does_not_depend_on_other_rows(tmp_path, kind, neighbour):
    """A missing weight became 0, which fills lists up, if another row of the batch had more weights."""
    inputs, parquet = pytest.importorskip("estimator_inputs"), pytest.importorskip("pyarrow.parquet")
    words = ["R", "G", "B", "R", "G"]
    rows = [{"c": ["R", "G"], "w": [1.0]}, {"c": words[: len(neighbour)], "w": neighbour}]
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        parquet.write_table(pytest.importorskip("pyarrow").Table.from_pylist(rows), path)
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    read = {"parquet": inputs.parquet_input_fn, "jsonl": inputs.jsonl_input_fn}[kind]
    column = tab.weighted_categorical_column(
        tab.categorical_column_with_vocabulary_list("c", ["R", "G", "B"], max_values=8), "w"
    )
    (batch,) = read(path, 2, shuffle=False, column_defaults={"w": np.nan})()
    with pytest.raises(tab.FeatureColumnError, match=r"Feature 'w' (has 1 weights|holds nan) in row 0 of the batch"):
        column.host_ids(batch)
    found = column.host_ids({name: values[1:] for name, values in batch.items()})
    assert found.weights[0, : len(neighbour)].tolist() == neighbour


@pytest.mark.parametrize("filling", [0.0, np.nan])
def test_weights_of_no_value_are_zero_however_wide_the_file_is(filling):
    """NaN fills weights up. It is NaN times any mask on the device, and was refused beyond `max_values`."""
    three = tab.categorical_column_with_vocabulary_list("c", ["R", "G", "B"], max_values=3)
    words = np.array([["R", "", "", ""], ["G", "", "B", ""]], object)
    weights = np.array([[1.0, filling, filling, filling], [2.0, 9.0, 3.0, filling]], np.float32)
    found = tab.weighted_categorical_column(three, "w").host_ids({"c": words, "w": weights})
    assert found.weights.tolist() == [[1, 0, 0], [2, 0, 3]]
    steps = tab.sequence_numeric_column("w", max_values=3).host_numbers({"w": weights[1:, [0, 2, 0, 3]]})
    assert steps[0][:, :, 0].tolist() == [[2, 3, 2]]


def test_a_batch_of_nan_weights_without_values_trains_without_compilation(tmp_path):
    """Debug mode multiplied NaN by 0 and reported a loss of NaN."""
    column = tab.weighted_categorical_column(WORDS, "w")
    config = ec.RunConfig(model_dir=str(tmp_path), debug=True, save_summary_steps=None, log_step_count_steps=None)
    features = {"c": np.array(["R", ""], object), "w": np.array([1.0, np.nan], np.float32)}
    estimator = tab.LinearClassifier([column], config=config)
    estimator.train(lambda: [(features, np.array([[0], [1]]))])
    assert estimator.evaluate(lambda: [(features, np.array([[0], [1]]))])["loss"] > 0


def test_a_number_beyond_a_sequence_is_no_filling():
    """A 0 of the data was read as filling if NaN stands for a missing number."""
    missing = np.array([[1.0, 2.0, 0.0]], np.float32)
    with pytest.raises(tab.FeatureColumnError, match="has 3 values, more than 2"):
        numbers_of({"s": missing}, "s", "s", 2, missing=np.nan)
    missing[0, 2] = np.nan
    assert numbers_of({"s": missing}, "s", "s", 2, missing=np.nan).tolist() == [[1.0, 2.0]]
    assert numbers_of({"s": np.array([[1.0, 2.0, 0.0]])}, "s", "s", 2, missing=np.nan, filled=0.0).shape == (1, 2)


@pytest.mark.parametrize(
    ("column", "dtype", "told"),
    [
        (
            tab.crossed_column([tab.bucketized_column(tab.numeric_column("s"), [1.0]), "t"], 3),
            "string",
            "numbers, but holds strings",
        ),
        (tab.categorical_column_with_identity("s", 3), "string", "integers, but holds strings"),
        (tab.categorical_column_with_hash_bucket("s", 3), "float32", "strings or integers, but holds float32"),
        (tab.categorical_column_with_vocabulary_list("s", ["a"]), "int32", "strings, but holds int64"),
        (tab.categorical_column_with_vocabulary_list("s", [1]), "string", "integers, but holds strings"),
    ],
    ids=lambda one: getattr(type(one), "__name__", ""),
)
def test_a_feature_of_the_receiver_of_another_kind_is_refused_in_one_form(column, dtype, told):
    (transform,) = tab.FeaturePlan.of([tab.indicator_column(column)]).transforms()
    with pytest.raises(
        ec.errors.ExportError, match=rf"^Feature 's' of column 's.*' must hold {told} in the receiver\.$"
    ):
        transform.program({name: ec.export.Feature((None, 1), dtype) for name in "st"})
