"""Exports take raw rows and tf.Examples. They include the host part of the columns, and labels have their names."""

import numpy as np
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from plugins.canned_tabular.tests.given_weights import QUIET

pytestmark = pytest.mark.plugins  # the format is part of estimator-exporters
RNG = np.random.default_rng(0)
ROWS = 32
CITY = RNG.choice(["Rome", "Oslo", "Lima", "Paris"], ROWS)
FEATURES = {
    "age": RNG.normal(40, 10, ROWS).astype(np.float32),
    "city": CITY,
    "tags": RNG.choice(["red", "blue", ""], (ROWS, 2)),
}
LABELS = np.where(FEATURES["age"] > 40, "old", "young")


@pytest.fixture(scope="module")
def columns(tmp_path_factory):
    vocabulary = tmp_path_factory.mktemp("words") / "cities.txt"
    vocabulary.write_text("Rome\nOslo\nLima\n")
    age = tab.numeric_column("age", normalizer_fn=lambda age: (age - 40) / 10)
    buckets = tab.bucketized_column(tab.numeric_column("age"), [30.0, 50.0])
    city = tab.categorical_column_with_vocabulary_file("city", vocabulary, num_oov_buckets=1)
    tags = tab.categorical_column_with_hash_bucket("tags", 20, max_values=2)
    wide = [buckets, city, tab.crossed_column(["city", buckets], 30)]
    deep = [age, tab.embedding_column(tags, 3), tab.indicator_column(city)]
    yield {"wide": wide, "deep": deep}
    vocabulary.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def estimator(columns, tmp_path_factory):
    made = tab.DNNLinearCombinedClassifier(
        str(tmp_path_factory.mktemp("model")),
        linear_feature_columns=columns["wide"],
        dnn_feature_columns=columns["deep"],
        dnn_hidden_units=[4],
        label_vocabulary=["old", "young"],
        config=ec.RunConfig(tf_random_seed=1, **QUIET),
    )
    return made.train(lambda: [(FEATURES, LABELS)] * 5)


def predictions(estimator):
    return [row["probabilities"] for row in estimator.predict(lambda: [FEATURES])]


@pytest.mark.slow
def test_raw_rows(estimator, tmp_path):
    feature = ec.export.Feature
    receiver = ec.export.build_raw_serving_input_receiver_fn(
        {"age": feature((None,)), "city": feature((None,), "string"), "tags": feature((None, 2), "string")}
    )
    raw = ec.export.load(estimator.export_saved_model(str(tmp_path), receiver)).raw_signatures["predict"]
    found = raw(**FEATURES)
    np.testing.assert_allclose(found["probabilities"], predictions(estimator), rtol=1e-5)
    with pytest.raises(ec.errors.ArgumentError, match=r"batch sizes: \{'age': 32, 'city': 31, 'tags': 32\}"):
        raw(**{**FEATURES, "city": CITY[1:]})
    assert set(np.ravel(found["classes"])) <= {"old", "young"}


def test_a_batch_without_rows_is_refused_as_such(estimator):
    none = {name: array[:0] for name, array in FEATURES.items()}
    with pytest.raises(ec.errors.InputError, match="A batch has no examples"):
        list(estimator.predict(lambda: [FEATURES, none]))


def record(row):
    example = ec.export.example_class()()
    features = example.features.feature
    features["age"].float_list.value.append(FEATURES["age"][row])
    features["city"].bytes_list.value.append(CITY[row].encode())
    features["tags"].bytes_list.value.extend(tag.encode() for tag in FEATURES["tags"][row] if tag)
    return example.SerializeToString()


@pytest.mark.slow
def test_tf_examples(estimator, columns, tmp_path):
    receiver = tab.columns_receiver_fn([*columns["wide"], *columns["deep"]])
    path = estimator.export_saved_model(str(tmp_path), receiver)
    for name in ("predict", "serving_default"):
        raw = ec.export.load(path).raw_signatures[name]
        assert raw.inputs == {"examples": ec.export.Feature((None,), "string")}
    raw = ec.export.load(path).raw_signatures["predict"]
    found = raw(examples=np.array([record(row) for row in range(ROWS)], object))
    np.testing.assert_allclose(found["probabilities"], predictions(estimator), rtol=1e-5)
    example = ec.export.example_class()()
    example.features.feature["age"].float_list.value.append(3.0)
    example.features.feature["tags"].bytes_list.value.extend([b"a", b"b", b"c"])
    with pytest.raises(ec.EstimatorError, match=r"Record 0: feature 'tags' has 3 values, more than 2"):
        raw(examples=np.array([example.SerializeToString()], object))
    with pytest.raises(ec.EstimatorError, match=r"Record 0 is not a serialized tf\.Example"):
        raw(examples=np.array([b"\xff\xff"], object))


@pytest.mark.slow
def test_the_vocabulary_is_in_the_export(estimator, columns, tmp_path):
    receiver = tab.columns_receiver_fn([*columns["wide"], *columns["deep"]])
    path = estimator.export_saved_model(str(tmp_path), receiver)
    expected = predictions(estimator)
    columns["wide"][1].vocabulary_file.rename(tmp_path / "elsewhere.txt")
    try:
        raw = ec.export.load(path).raw_signatures["predict"]
        found = raw(examples=np.array([record(row) for row in range(ROWS)], object))
    finally:
        (tmp_path / "elsewhere.txt").rename(columns["wide"][1].vocabulary_file)
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-5)


def tagged(model_dir):
    """A model that saw examples with up to three tags."""
    tags = tab.categorical_column_with_vocabulary_list("tags", ["red", "blue"])
    made = tab.LinearClassifier([tags], str(model_dir), config=ec.RunConfig(tf_random_seed=1, **QUIET))
    batch = {"tags": np.array([["red", "blue", "red"], ["blue", "", ""]])}
    return made.train(lambda: [(batch, np.array([[0], [1]]))]), [tags]


def test_a_parsing_receiver_takes_as_many_values_as_training_saw(tmp_path):
    _, columns = tagged(tmp_path / "model")
    estimator = tab.LinearClassifier(columns, str(tmp_path / "model"), config=ec.RunConfig(**QUIET))  # another process
    receiver = ec.export.build_parsing_serving_input_receiver_fn(tab.make_parse_example_spec(columns))
    loaded = ec.export.load(estimator.export_saved_model(str(tmp_path / "e"), receiver))
    rows = [["red", "blue", "red"], ["blue"], []]
    records = []
    for row in rows:
        example = ec.export.example_class()()
        example.features.feature["tags"].bytes_list.value.extend(tag.encode() for tag in row)
        records.append(example.SerializeToString())
    found = loaded.raw_signatures["predict"](examples=np.array(records, object))
    padded = {"tags": np.array([row + [""] * (3 - len(row)) for row in rows])}
    expected = [row["probabilities"] for row in estimator.predict(lambda: [padded])]
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-5)
    assert loaded.manifest["provenance"]["training_saw"] == {"tags": {"places": 3, "dtype": "string"}}


def test_an_export_that_takes_less_than_training_did_says_so(tmp_path, caplog):
    estimator, _ = tagged(tmp_path / "model")
    receiver = ec.export.build_raw_serving_input_receiver_fn({"tags": ec.export.Feature((None, 2), "string")})
    estimator.export_saved_model(str(tmp_path / "e"), receiver)
    assert "takes 2 values of the feature 'tags', but training saw examples with 3" in caplog.text


def test_integers_crossed_by_name_are_told_and_exported_by_their_type(tmp_path, caplog):
    """As in tf.estimator, the specification of a cross is for strings. The log names the type that training saw."""
    columns = [tab.crossed_column(["a", "b"], 50)]
    features = {"a": np.array([[1], [2], [3]]), "b": np.array([[3], [2], [1]])}
    estimator = tab.LinearClassifier(columns, str(tmp_path / "model"), config=ec.RunConfig(**QUIET))
    estimator.train(lambda: [(features, np.array([[0], [1], [1]]))])
    estimator.export_saved_model(str(tmp_path / "texts"), tab.columns_receiver_fn(columns))
    assert "the feature 'a' as string, but training saw int" in caplog.text
    assert "VarLenFeature('int64') in its feature_spec" in caplog.text
    integers = {name: ec.export.VarLenFeature("int64") for name in features}
    receiver = ec.export.build_parsing_serving_input_receiver_fn({**tab.make_parse_example_spec(columns), **integers})
    loaded = ec.export.load(estimator.export_saved_model(str(tmp_path / "integers"), receiver))
    records = [ec.export.example_class()() for _ in features["a"]]
    for row, record in enumerate(records):
        for name, values in features.items():
            record.features.feature[name].int64_list.value.append(int(values[row, 0]))
    found = loaded.raw_signatures["predict"](
        examples=np.array([record.SerializeToString() for record in records], object)
    )
    expected = [row["probabilities"] for row in estimator.predict(lambda: [features])]
    np.testing.assert_array_equal(found["probabilities"], expected)


def test_sequences_that_are_filled_up_with_different_numbers_are_exported_together(tmp_path):
    """Zeros are filling in one sequence and steps in the other. A batch of zeros does not show the difference."""
    columns = [
        tab.sequence_numeric_column("speed", max_values=4, fill=0.0),
        tab.sequence_numeric_column("gear", dtype="int64", max_values=4, fill=-1.0),
    ]
    features = {"speed": np.array([[1.5, 0.0, 0.0], [2.0, -1.0, 3.0]]), "gear": np.array([[0, -1, -1], [1, 2, 0]])}
    model = tab.RNNClassifier(columns, units=[2], model_dir=str(tmp_path / "model"), config=ec.RunConfig(**QUIET))
    model.train(lambda: [(features, np.array([[0], [1]]))])
    loaded = ec.export.load(model.export_saved_model(str(tmp_path / "export"), tab.columns_receiver_fn(columns)))
    records = [ec.export.example_class()() for _ in range(2)]
    for row, steps in enumerate((1, 3)):
        records[row].features.feature["speed"].float_list.value.extend(features["speed"][row, :steps].tolist())
        records[row].features.feature["gear"].int64_list.value.extend(features["gear"][row, :steps].tolist())
    requests = np.array([record.SerializeToString() for record in records], object)
    found = loaded.raw_signatures["predict"](examples=requests)
    expected = [row["probabilities"] for row in model.predict(lambda: [features])]
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-6)


@pytest.mark.parametrize("mode", [pytest.param(ec.ModeKeys.EVAL, marks=pytest.mark.slow), ec.ModeKeys.TRAIN])
@pytest.mark.parametrize("kind", ["LinearClassifier", pytest.param("LinearRegressor", marks=pytest.mark.slow)])
def test_the_modes_with_labels(tmp_path, kind, mode):
    labels = np.array([[0], [1], [1]], np.int32 if kind == "LinearClassifier" else np.float32)
    features = {"age": np.array([[1.0], [2.0], [5.0]], np.float32)}
    make = getattr(tab, kind)
    estimator = make([tab.numeric_column("age")], str(tmp_path / "model"), config=ec.RunConfig(**QUIET))
    estimator.train(lambda: [(features, labels)])
    receiver = ec.export.build_supervised_input_receiver_fn_from_input_fn(lambda: [(features, labels)])
    path = estimator.export_saved_model(str(tmp_path / "e"), receiver, experimental_mode=mode)
    found = ec.export.load(path).signatures[mode](**features, label=labels)["loss"]
    np.testing.assert_allclose(found, estimator.evaluate(lambda: [(features, labels)])["loss"], rtol=1e-5)
