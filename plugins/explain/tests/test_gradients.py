"""Tests of integrated gradients: exact values, completeness, classes, missing numbers, and modules."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from explained_program import ROWS, input_fn, trained

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_explain import integrated_gradients


@pytest.fixture(scope="module")
def estimator(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("attributed"))


def test_a_square_has_the_attributions_of_the_formula(estimator):
    found = integrated_gradients(estimator, input_fn(), baseline="zero")
    assert set(found.values) == {"x", "useless"}
    np.testing.assert_allclose(found.values["x"], 3 * ROWS["x"] ** 2, rtol=1e-4, atol=1e-5)
    assert not found.values["useless"].any()
    assert found.residual < 1e-3
    assert list(found.strength) == ["x", "useless"]


def test_words_keep_their_values(estimator):
    found = integrated_gradients(estimator, input_fn(), baseline="zero")
    slope = float(estimator.get_variable_value("slope"))
    np.testing.assert_allclose(found.baseline_scores, slope * np.char.str_len(ROWS["word"]), rtol=1e-5)


def test_the_baseline_is_the_mean_by_default_or_a_number(estimator):
    mean = integrated_gradients(estimator, input_fn())
    np.testing.assert_allclose(mean.values["x"], 3 * (ROWS["x"] ** 2 - ROWS["x"].mean() ** 2), rtol=1e-3, atol=1e-4)
    one = integrated_gradients(estimator, input_fn(), baseline={"x": 1.0})
    np.testing.assert_allclose(one.values["x"], 3 * (ROWS["x"] ** 2 - 1), rtol=1e-3, atol=1e-4)


def test_more_steps_leave_a_smaller_residual(tmp_path):
    def wavy(features, labels, mode):
        y = jnp.sin(4 * features["x"]) * ec.get_variable("scale", (), initializer=jax.nn.initializers.ones)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"logits": y})
        return ec.EstimatorSpec(mode, loss=jnp.mean(y**2), train_op=optax.sgd(0.0))

    rows = ec.inputs.numpy_input_fn({"x": ROWS["x"]}, ROWS["x"], batch_size=32, shuffle=False)
    estimator = ec.Estimator(wavy, str(tmp_path)).train(rows, steps=1)
    few, many = (integrated_gradients(estimator, rows, steps=steps).residual for steps in (4, 256))
    assert many < few / 20
    assert many < 1e-3


def assert_it_is_a_square(model_fn, model_dir):
    rows = ec.inputs.numpy_input_fn({"x": ROWS["x"]}, ROWS["x"], batch_size=32, shuffle=False)
    estimator = ec.Estimator(model_fn, str(model_dir)).train(rows, steps=1)
    found = integrated_gradients(estimator, rows, baseline="zero")
    np.testing.assert_allclose(found.values["x"], ROWS["x"] ** 2, rtol=1e-4, atol=1e-5)


def test_a_model_that_writes_summaries_is_explained(tmp_path):
    def model_fn(features, labels, mode):
        y = features["x"] ** 2 * ec.get_variable("scale", (), initializer=jax.nn.initializers.ones)
        ec.summary.scalar("mean", y.mean())
        ec.summary.histogram("all", y)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"logits": y})
        return ec.EstimatorSpec(mode, loss=jnp.mean(y**2), train_op=optax.sgd(0.0))

    assert_it_is_a_square(model_fn, tmp_path)


def test_a_model_of_modules_and_named_tensors_is_explained(tmp_path):
    def model_fn(features, labels, mode):
        scaled = ec.module(lambda x: x * ec.get_variable("scale", (), jax.nn.initializers.ones), name="net")
        y = ec.tensor("squared", scaled(features["x"]) ** 2)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"logits": y})
        return ec.EstimatorSpec(mode, loss=jnp.mean(y**2), train_op=optax.sgd(0.0))

    assert_it_is_a_square(model_fn, tmp_path)


@pytest.mark.plugins
def test_a_model_of_flax_with_state_is_explained(tmp_path):
    from flax import nnx

    def model_fn(features, labels, mode):
        train = mode == ec.ModeKeys.TRAIN

        def made(rngs):
            norm, drop = nnx.BatchNorm(4, use_running_average=not train, rngs=rngs), nnx.Dropout(0.2, rngs=rngs)
            return nnx.Sequential(nnx.Linear(1, 4, rngs=rngs), norm, drop, nnx.Linear(4, 1, rngs=rngs))

        net = ec.module(made, name="net")
        net.set_attributes(deterministic=not train, raise_if_not_found=False)
        y = net(features["x"][:, None])[:, 0]
        if not train:
            return ec.EstimatorSpec(mode, predictions={"y": y})
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.1))

    rows = ec.inputs.numpy_input_fn({"x": ROWS["x"]}, ROWS["x"], batch_size=32, shuffle=False)
    estimator = ec.Estimator(model_fn, str(tmp_path)).train(rows, steps=1)
    found = integrated_gradients(estimator, rows, output="y", baseline="zero")
    predicted = np.concatenate([one["y"] for one in estimator.predict(rows, yield_single_examples=False)])
    np.testing.assert_allclose(found.scores, predicted, rtol=1e-5, atol=1e-6)
    assert found.residual < 1e-5  # the network is affine
    assert np.abs(found.values["x"]).max() > 1e-3


def test_a_missing_number_stays_missing(estimator):
    x = ROWS["x"].copy()
    x[3] = np.nan

    def careful(features, labels, mode, config):
        seen = jnp.where(jnp.isnan(features["x"]), 0.0, features["x"])
        return estimator.model_fn({**features, "x": seen}, labels, mode, config)

    rows = ec.inputs.numpy_input_fn({**ROWS, "x": x}, batch_size=40, shuffle=False)
    found = integrated_gradients(ec.with_model_fn(estimator, careful), rows)
    assert found.values["x"][3] == 0.0
    assert np.isfinite(found.values["x"]).all()
    assert found.residual < 1e-3


def test_a_number_that_every_row_lacks_has_no_part(estimator):
    empty = np.full(len(ROWS["x"]), np.nan, np.float32)

    def careful(features, labels, mode, config):
        kept = {name: value for name, value in features.items() if name != "empty"}
        return estimator.model_fn(kept, labels, mode, config)

    rows = ec.inputs.numpy_input_fn({**ROWS, "empty": empty}, batch_size=40, shuffle=False)
    found = integrated_gradients(ec.with_model_fn(estimator, careful), rows)
    assert not found.values["empty"].any()
    assert found.strength["empty"] == 0.0
    np.testing.assert_allclose(found.values["x"], integrated_gradients(estimator, input_fn()).values["x"])


def test_the_mean_of_a_sequence_leaves_out_its_padding(tmp_path):
    """Columns of estimator-canned-tabular make these features. The zeros of the padding moved the baseline."""
    lengths, ids = np.array([1, 3, 2]), np.array([[4, -1], [5, 6], [-1, -1]])
    steps, words = np.arange(3) < lengths[:, None], ids >= 0
    numbers = np.where(steps, np.array([[1.0, 9, 9], [2, 4, 6], [6, 8, 9]]), 0.0).astype(np.float32)[..., None]
    weights = np.where(words, np.array([[3.0, 9], [5, 2], [9, 9]]), 0.0).astype(np.float32)
    features = {"q.numbers": numbers, "q.lengths": lengths, "w.weights": weights, "w.ids": ids, "numbers": numbers}

    def squares(features, labels, mode):
        places = jnp.arange(3) < features["q.lengths"][:, None]
        y = jnp.sum(jnp.where(places, features["q.numbers"][..., 0] ** 2, 0.0), axis=1)
        y += jnp.sum(jnp.where(features["w.ids"] >= 0, features["w.weights"], 0.0), axis=1)
        y *= ec.get_variable("scale", (), initializer=jax.nn.initializers.ones)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"logits": y + features["numbers"].sum(axis=(1, 2))})
        return ec.EstimatorSpec(mode, loss=jnp.mean(y**2), train_op=optax.sgd(0.0))

    rows = ec.inputs.numpy_input_fn(features, np.zeros(3, np.float32), batch_size=2, shuffle=False)
    found = integrated_gradients(ec.Estimator(squares, str(tmp_path)).train(rows, steps=1), rows)
    means = np.array([3.0, 6.0, 6.0])  # of 1, 2, 6; of 4, 8; of 6
    expected = np.where(steps, numbers[..., 0] ** 2 - means**2, 0.0)
    np.testing.assert_allclose(found.values["q.numbers"][..., 0], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.values["w.weights"], np.where(words, weights - [4.0, 2.0], 0.0), atol=1e-4)
    np.testing.assert_allclose(found.values["numbers"], numbers - numbers.mean(axis=0), atol=1e-4)
    assert found.residual < 1e-3


def classifier(features, labels, mode):
    weights = ec.get_variable("weights", (2, 3))
    logits = jnp.stack([features["a"], features["b"]], axis=1) @ weights
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"logits": logits})
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))


def test_the_predicted_class_is_explained_or_the_one_that_is_named(tmp_path):
    rng = np.random.default_rng(1)
    x = {"a": rng.normal(size=20).astype(np.float32), "b": rng.normal(size=20).astype(np.float32)}
    rows = ec.inputs.numpy_input_fn(x, rng.integers(0, 3, 20), batch_size=8, shuffle=False)
    estimator = ec.Estimator(classifier, str(tmp_path), ec.RunConfig(tf_random_seed=2)).train(rows, steps=3)
    weights = estimator.get_variable_value("weights")
    of_two = integrated_gradients(estimator, rows, class_id=2, baseline="zero")
    np.testing.assert_allclose(of_two.values["a"], x["a"] * weights[0, 2], rtol=1e-4, atol=1e-6)
    predicted = np.argmax(np.stack([x["a"], x["b"]], 1) @ weights, axis=1)
    of_own = integrated_gradients(estimator, rows, baseline="zero")
    np.testing.assert_allclose(of_own.values["b"], x["b"] * weights[1, predicted], rtol=1e-4, atol=1e-6)
    with pytest.raises(ArgumentError, match="class_id must be between 0 and 2, given: 3"):
        integrated_gradients(estimator, rows, class_id=3)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_numbers_of_half_precision_are_explained(tmp_path, precision):
    def half(features, labels, mode):
        y = features["x"] * ec.get_variable("slope", (), initializer=jax.nn.initializers.ones)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={("head", "logits"): y})
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.0))

    rows = ec.inputs.numpy_input_fn({"x": ROWS["x"]}, ROWS["x"], batch_size=32, shuffle=False)
    estimator = ec.Estimator(half, str(tmp_path), ec.RunConfig(precision=precision)).train(rows, steps=1)
    found = integrated_gradients(estimator, rows, output="head/logits", baseline="zero")
    np.testing.assert_allclose(found.values["x"], ROWS["x"], rtol=2e-2, atol=1e-3)


def test_a_model_with_dropout_and_a_key_is_explained(tmp_path):
    def dropped(features, labels, mode):
        kept = jax.random.bernoulli(ec.next_rng_key(), 0.5, features["x"].shape) if mode == "train" else 1.0
        y = features["x"] * kept * ec.get_variable("slope", (), initializer=jax.nn.initializers.ones)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"y": y})
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.0))

    rows = ec.inputs.numpy_input_fn({"x": ROWS["x"]}, ROWS["x"], batch_size=32, shuffle=False)
    estimator = ec.Estimator(dropped, str(tmp_path)).train(rows, steps=1)
    found = integrated_gradients(estimator, rows, output="y", baseline="zero")
    np.testing.assert_allclose(found.values["x"], ROWS["x"], rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"output": "odds"},
            r"no prediction 'odds' to explain. The model predicts \['logits'\]\. Name one with output",
        ),
        ({"baseline": "median"}, 'baseline must be "mean", "zero" or numbers by feature'),
        ({"baseline": {"age": 1.0}}, r"there are no float features \['age'\]. Float features: \['useless', 'x'\]"),
        ({"steps": 0}, "steps must be at least 1, given: 0"),
        ({"rows": 0}, "rows must be at least 1, given: 0"),
    ],
)
def test_wrong_arguments_are_refused(estimator, arguments, words):
    with pytest.raises(ArgumentError, match=words):
        integrated_gradients(estimator, input_fn(), **arguments)
