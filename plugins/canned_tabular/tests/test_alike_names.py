"""Tests of similar names: of columns in variables, and of features and the outputs of a host part."""

import numpy as np
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_canned_tabular.layers.dense_features import placed

ROWS = 80
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(ROWS, 2)).astype(np.float32)
WORDS = RNG.choice(["a", "b", "c"], ROWS)
CITY = tab.categorical_column_with_vocabulary_list("city", ["a", "b", "c"])
LINE = 2 * NUMBERS[:, 0] - 3 * NUMBERS[:, 1]


def weights_of(columns, features, labels):
    estimator = tab.LinearRegressor(columns, config=ec.RunConfig(tf_random_seed=1))
    inputs = ec.inputs.numpy_input_fn(features, labels, batch_size=20, num_epochs=150, shuffle=False)
    estimator.train(inputs)
    kept = (name for name in estimator.get_variable_names() if name.endswith("/weights"))
    return {name.split("/")[-2]: estimator.get_variable_value(name).ravel() for name in kept}


@pytest.mark.parametrize("names", [("年齢", "性別"), ("a/b", "a_b"), ("price (€)", "price ($)")])
def test_columns_of_one_spelling_have_weights_of_their_own(names):
    found = weights_of([tab.numeric_column(name) for name in names], dict(zip(names, NUMBERS.T, strict=True)), LINE)
    assert sorted(round(float(weight), 1) for (weight,) in found.values()) == [-3.0, 2.0]


def test_embeddings_of_one_spelling_have_tables_of_their_own():
    words = [tab.categorical_column_with_identity(name, 4) for name in ("年", "月")]
    estimator = tab.DNNRegressor([4], [tab.embedding_column(word, 2) for word in words])
    features = {name: np.arange(ROWS) % 4 for name in ("年", "月")}
    estimator.train(ec.inputs.numpy_input_fn(features, LINE, batch_size=20, shuffle=False), max_steps=1)
    assert sum(name.endswith("/embedding_weights") for name in estimator.get_variable_names()) == 2


def test_a_name_that_is_alone_stays_and_a_mark_depends_on_the_name_alone():
    first, second, third = (tab.numeric_column(name) for name in ("a b", "a/b", "a_b"))
    assert {column.name: name for column, name in placed([first], "s")} == {"a b": "s/a_b"}
    two, three = placed([second, first], "s"), placed([third, first, second], "s")
    assert set(two) < set(three)
    assert ("a_b", "s/a_b") in [(column.name, name) for column, name in three]


@pytest.mark.parametrize("name", ["city.ids", "city.weights"])
def test_a_feature_that_is_named_as_the_ids_of_another_column_is_itself(name):
    features = {"city": WORDS, name: NUMBERS[:, 0]}
    labels = 2 * NUMBERS[:, 0] + (WORDS == "b")
    weight = weights_of([CITY, tab.numeric_column(name)], features, labels)[name]
    assert round(float(weight[0]), 1) == 2.0


def test_a_feature_that_no_column_reads_weighs_no_category():
    labels = (WORDS == "b").astype(np.float32)
    alone = weights_of([CITY], {"city": WORDS}, labels)
    beside = weights_of([CITY], {"city": WORDS, "city.weights": NUMBERS[:, 0]}, labels)
    np.testing.assert_array_equal(beside["city"], alone["city"])


def test_a_feature_that_is_named_as_a_replacement_is_itself():
    features = {"age": np.where(np.arange(ROWS) % 4, NUMBERS[:, 1], np.nan), "age.fill": NUMBERS[:, 0]}
    columns = [tab.numeric_column("age", missing=0.0), tab.numeric_column("age.fill")]
    labels = 2 * NUMBERS[:, 0] - 3 * np.nan_to_num(features["age"])
    found = weights_of(columns, features, labels.astype(np.float32))
    assert round(float(found["age.fill"][0]), 1) == 2.0
    assert round(float(found["age"][0]), 1) == -3.0


def evaluated(columns, features, weight):
    estimator = tab.LinearRegressor(columns, weight_column=weight, config=ec.RunConfig(tf_random_seed=1))
    estimator.train(ec.inputs.numpy_input_fn(features, LINE, batch_size=20, num_epochs=2, shuffle=False))
    return estimator.evaluate(ec.inputs.numpy_input_fn(features, LINE, batch_size=20, shuffle=False))


@pytest.mark.parametrize(
    ("column", "weight"), [(CITY, "city.ids"), (tab.categorical_column_with_identity("visits", 4), "visits")]
)
def test_a_weight_beside_a_column_is_the_feature(column, weight):
    features = {column.key: WORDS} if column is CITY else {}
    visits = RNG.integers(0, 4, ROWS)
    expected = evaluated([column], {"visits": visits, **features, "other": visits}, "other")
    assert evaluated([column], {**features, weight: visits}, weight) == expected
