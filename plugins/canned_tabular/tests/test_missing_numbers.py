"""The replacement of missing numbers is learned once, and is the same in evaluation, prediction and exports."""

import numpy as np
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_core.errors import ArgumentError, InputError
from estimator_core.inputs import numpy_input_fn
from estimator_inputs import csv_input_fn

AGES = np.array([10.0, np.nan, 20.0, 60.0, np.nan, 30.0], np.float32)
LABELS = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], np.float32)
AGE = tab.numeric_column("age")
FILLS = {"mean": 30.0, "median": 25.0, "indicator": 30.0, -1.0: -1.0}


def given(ages=AGES, batch_size=3):
    return numpy_input_fn({"age": ages}, LABELS[: len(ages)], batch_size, shuffle=False)


def regressor_column(missing):
    return tab.numeric_column("age", missing=missing)


def regressor(path, missing):
    return tab.LinearRegressor([regressor_column(missing)], str(path))


def predicted(estimator, ages):
    rows = numpy_input_fn({"age": np.asarray(ages, np.float32)}, batch_size=len(ages), shuffle=False)
    return np.array([one["predictions"][0] for one in estimator.predict(rows)])


@pytest.mark.plugins
@pytest.mark.parametrize("missing", FILLS)
def test_the_same_everywhere(tmp_path, missing):
    estimator = regressor(tmp_path / "model", missing).train(given())
    weights = estimator.get_variable_value("linear/linear_model/age/weights")
    assert weights.shape == ((2 if missing == "indicator" else 1), 1)
    of_missing, of_fill = predicted(estimator, [np.nan, FILLS[missing]])
    beside = weights[1, 0] if missing == "indicator" else 0.0
    assert of_missing == pytest.approx(of_fill + beside, rel=1e-5)
    again = regressor(tmp_path / "model", missing)
    np.testing.assert_array_equal(predicted(again, AGES), predicted(estimator, AGES))
    receiver = ec.export.build_raw_serving_input_receiver_fn({"age": ec.export.Feature((None,), "float32")})
    served = ec.export.load(again.export_saved_model(str(tmp_path / "export"), receiver)).raw_signatures["predict"]
    np.testing.assert_allclose(served(age=AGES)["predictions"][:, 0], predicted(estimator, AGES), rtol=1e-6)
    with pytest.raises(ArgumentError, match=r"Feature 'age' holds inf in row 1"):
        served(age=np.array([0, np.inf], np.float32))


def test_none_among_objects_and_files(tmp_path):
    objects = np.array([10, None, 20, 60, None, 30], object)
    path = tmp_path / "rows.csv"
    path.write_text("age,y\n" + "".join(f"{'' if np.isnan(a) else a},{y}\n" for a, y in zip(AGES, LABELS, strict=True)))
    rows = csv_input_fn(path, 3, shuffle=False, num_epochs=1, label_name="y", column_defaults={"age": np.nan})
    found = [
        predicted(regressor(tmp_path / str(number), "mean").train(source), AGES)
        for number, source in enumerate([given(), given(objects), rows])
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_places_of_a_shape_have_their_own(tmp_path):
    column = tab.numeric_column("x", 2, missing="mean")
    x = np.array([[1.0, np.nan], [3.0, 10.0], [np.nan, 20.0]], np.float32)
    estimator = tab.LinearRegressor([column], str(tmp_path))
    estimator.train(numpy_input_fn({"x": x}, LABELS[:3], 3, shuffle=False))
    rows = np.array([[np.nan, np.nan], [2.0, 15.0]], np.float32)
    one, other = (row["predictions"][0] for row in estimator.predict(numpy_input_fn({"x": rows}, shuffle=False)))
    assert one == pytest.approx(other)


def test_what_cannot_be_learned_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"Feature 'age' learns from .*can be read only once.*missing=0\.0"):
        regressor(tmp_path / "a", "mean").train(lambda: list(given()()))
    with pytest.raises(InputError, match="Feature 'age' has no number in 6 examples"):
        regressor(tmp_path / "b", "median").train(given(np.full(6, np.nan, np.float32)))
    with pytest.raises(InputError, match="Feature 'age' holds inf in row 0"):
        regressor(tmp_path / "c", "mean").train(given(np.array([np.inf, 1.0], np.float32)))
    assert np.isfinite(predicted(regressor(tmp_path / "d", 0.0).train(lambda: list(given()())), AGES)).all()


@pytest.mark.parametrize("missing", ["mode", True, np.nan])
def test_other_words_are_refused(missing):
    with pytest.raises(ArgumentError, match="missing must be a finite number or one of"):
        tab.numeric_column("age", missing=missing)


def test_columns_of_one_feature_agree():
    with pytest.raises(ArgumentError, match="Columns of the feature 'age' differ in missing"):
        tab.LinearRegressor(
            [tab.numeric_column("age"), tab.bucketized_column(tab.numeric_column("age", missing=0.0), [1])]
        )
    with pytest.raises(ArgumentError, match="Buckets hold only numbers"):
        tab.bucketized_column(tab.numeric_column("age", missing="indicator"), [1.0])


WORDS = np.array(["a", "b", "a", "b", "b", "a"])
#: Columns that read buckets, by what they do with them. All but the first two read them on the host.
READERS = {
    "embedded": lambda buckets: tab.embedding_column(buckets, 2),
    "indicated": tab.indicator_column,
    "crossed": lambda buckets: tab.indicator_column(tab.crossed_column([buckets, "word"], 30)),
    "weighted": lambda buckets: tab.indicator_column(tab.weighted_categorical_column(buckets, "weight")),
}


def of_buckets(reader, missing):
    buckets = tab.bucketized_column(tab.numeric_column("age", missing=missing), [15.0, 25.0, 45.0])
    return tab.DNNRegressor([3], [READERS[reader](buckets)], config=ec.RunConfig(tf_random_seed=1))


def rows_of(ages):
    return {"age": ages, "word": WORDS, "weight": np.full(6, 2.0, np.float32)}


@pytest.mark.parametrize("reader", READERS)
def test_a_missing_number_of_buckets_is_replaced_or_refused_wherever_they_are_read(reader):
    weights = []
    for ages, missing in [(AGES, 20.0), (np.nan_to_num(AGES, nan=20.0), None)]:
        estimator = of_buckets(reader, missing).train(numpy_input_fn(rows_of(ages), LABELS, 3, shuffle=False))
        weights.append([estimator.get_variable_value(name) for name in estimator.get_variable_names()])
    for replaced, given in zip(*weights, strict=True):
        np.testing.assert_array_equal(replaced, given)
    with pytest.raises(InputError, match=r"Feature 'age' holds nan in row 1: it is missing"):
        of_buckets(reader, None).train(numpy_input_fn(rows_of(AGES), LABELS, 3, shuffle=False))
    if reader in ("embedded", "indicated"):
        of_buckets(reader, "mean").train(numpy_input_fn(rows_of(AGES), LABELS, 3, shuffle=False))
    else:
        with pytest.raises(ArgumentError, match="on the host, where the mean is unknown: give numeric_column"):
            of_buckets(reader, "mean")


@pytest.mark.parametrize("missing", ["mean", "median", "indicator", 30.0])
@pytest.mark.parametrize("reader", ["crossed", "weighted"])
def test_a_column_beside_buckets_on_the_host_has_its_own_replacement_of_missing_numbers(reader, missing):
    """Buckets on the host cannot have a learned one, and both had to be the same."""

    def trained(ages, host_missing):
        buckets = tab.bucketized_column(tab.numeric_column("age", missing=host_missing), [15.0, 25.0, 45.0])
        columns = [tab.numeric_column("age", missing=missing), READERS[reader](buckets)]
        estimator = tab.DNNRegressor([3], columns, config=ec.RunConfig(tf_random_seed=1))
        estimator.train(numpy_input_fn(rows_of(ages), LABELS, 3, shuffle=False))
        assert estimator.evaluate(numpy_input_fn(rows_of(ages), LABELS, 3, shuffle=False))["loss"] >= 0
        return estimator

    whole = np.nan_to_num(AGES, nan=20.0)
    trained(whole, None)
    trained(AGES, 20.0)
    with pytest.raises(InputError, match=r"'age' holds nan in row 1: it is missing, and 'age_bucketized' is crossed"):
        trained(AGES, None)
    with pytest.raises(InputError, match=r"'age' holds nan in row 1"):
        next(iter(trained(whole, None).predict(numpy_input_fn(rows_of(AGES), batch_size=3, shuffle=False))))


@pytest.mark.plugins
@pytest.mark.parametrize("crossed", [True, False])
def test_objects_that_are_integers_stay_integers_where_a_column_of_categories_reads_them_too(tmp_path, crossed):
    """They became float32, which a column of categories refuses."""
    buckets = tab.bucketized_column(tab.numeric_column("age"), [15.0, 25.0])
    kinds = tab.crossed_column([buckets, "age"], 50) if crossed else tab.categorical_column_with_identity("age", 60)
    ages = np.array([20, 30, 40, 10, 5, 50])
    found = []
    for given in (ages, ages.astype(object)):
        estimator = tab.LinearRegressor([buckets, kinds], config=ec.RunConfig(tf_random_seed=1))
        estimator.train(numpy_input_fn({"age": given}, LABELS, 3, shuffle=False))
        receiver = ec.export.build_raw_serving_input_receiver_fn({"age": ec.export.Feature((None,), "int64")})
        export = ec.export.load(estimator.export_saved_model(str(tmp_path / "export"), receiver))
        found.append(export.raw_signatures["predict"](age=given)["predictions"])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("given", [np.arange(1, 7), np.arange(6) % 2 > 0], ids=["integers", "truth values"])
@pytest.mark.parametrize("hashed", [True, False])
def test_weights_that_come_as_objects_are_read_as_categories_too(hashed, given):
    """They became float32, which such a column refuses."""
    make = tab.categorical_column_with_hash_bucket if hashed else tab.categorical_column_with_identity
    column = make("count", 7, dtype="int64") if hashed else make("count", 7)
    found = []
    for counts in (given, given.astype(object)):
        estimator = tab.LinearRegressor([column], weight_column="count", config=ec.RunConfig(tf_random_seed=1))
        rows_in = numpy_input_fn({"count": counts}, LABELS, 3, shuffle=False)
        loss = estimator.train(rows_in).evaluate(rows_in)["loss"]
        rows = estimator.predict(numpy_input_fn({"count": counts}, batch_size=3, shuffle=False))
        found.append([loss, *(float(row["predictions"][0]) for row in rows)])
    np.testing.assert_array_equal(*found)


def test_buckets_of_normalised_numbers_are_refused_on_the_host():
    buckets = tab.bucketized_column(tab.numeric_column("age", normalizer_fn=lambda age: age / 10), [2.0])
    for reader in ("crossed", "weighted"):
        with pytest.raises(ArgumentError, match="on the host, where its normalizer_fn does not run"):
            READERS[reader](buckets)


def test_a_format_without_an_operation_for_missing_numbers_refuses_their_buckets():
    buckets = tab.bucketized_column(tab.numeric_column("age", missing=1.0), [2.0])
    (transform,) = tab.FeaturePlan.of([tab.weighted_categorical_column(buckets, "w")]).transforms()
    features = {name: ec.export.Feature((None,), "float32") for name in ("age", "w")}
    with pytest.raises(ec.errors.ExportError, match="Missing numbers of 'age_bucketized' are replaced before"):
        transform.program(features)


def test_a_model_without_learned_numbers_takes_a_number_alone():
    ages = numpy_input_fn({"age": AGES}, batch_size=3, shuffle=False)
    clusters = tab.KMeans(2, feature_columns=[tab.numeric_column("age", missing=7.0)]).train(ages).cluster_centers()
    assert np.isfinite(clusters).all()
    with pytest.raises(ArgumentError, match=r"The mean of the feature 'age' is learned only by models with a head"):
        tab.KMeans(2, feature_columns=[tab.numeric_column("age", missing="mean")]).train(ages)


@pytest.mark.plugins
def test_a_record_that_lacks_a_number_has_a_missing_one(tmp_path):
    estimator = regressor(tmp_path / "model", "mean").train(given())
    path = estimator.export_saved_model(str(tmp_path / "export"), tab.columns_receiver_fn([regressor_column("mean")]))
    records = []
    for age in (None, 30.0):
        record = ec.export.example_class()()
        if age is not None:
            record.features.feature["age"].float_list.value.append(age)
        records.append(record.SerializeToString())
    lacking, there = ec.export.load(path).raw_signatures["predict"](examples=np.array(records, object))["predictions"]
    assert lacking == there
