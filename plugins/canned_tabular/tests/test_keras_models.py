"""Tests of `model_to_estimator`: training equals Keras' own `fit`, and weights convert in both directions."""

import numpy as np
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_core.errors import ArgumentError, ModelFnError
from plugins.canned_tabular.tests.given_weights import QUIET

keras = pytest.importorskip("keras")
pytestmark = [
    pytest.mark.libraries,
    # Keras' variables use numpy's old protocol.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"),
]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 3)).astype(np.float32)
Y = (X @ np.array([1.0, -1.0, 0.5]) > 0).astype(np.int32)
BATCHES = [(X[at : at + 16], Y[at : at + 16]) for at in range(0, 64, 16)]


def classifier():
    keras.utils.set_random_seed(3)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((3,), name="x"),
            layers.Dense(4, activation="tanh", kernel_regularizer=keras.regularizers.L2(0.01)),
            layers.BatchNormalization(),
            layers.Dense(2, activation="softmax"),
        ]
    )
    rate = keras.optimizers.schedules.ExponentialDecay(0.05, 3, 0.5)
    model.compile(optimizer=keras.optimizers.Adam(rate), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def quiet(tmp_path):
    return ec.RunConfig(model_dir=str(tmp_path), **QUIET)


def test_it_trains_as_fit_does(tmp_path):
    model, peer = classifier(), classifier()
    before = [np.array(weight) for weight in model.get_weights()]
    estimator = tab.model_to_estimator(model, config=quiet(tmp_path))
    estimator.train(lambda: [({"x": x}, y) for x, y in BATCHES] * 2)
    for x, y in BATCHES * 2:
        peer.train_on_batch(x, y)
    found = estimator.evaluate(lambda: [({"x": X}, Y)])
    loss, accuracy = peer.evaluate(X, Y, batch_size=64, verbose=0)
    assert found["loss"] == pytest.approx(loss, abs=1e-5)
    assert found["accuracy"] == pytest.approx(accuracy, abs=1e-6)
    predicted = [row[model.layers[-1].name] for row in estimator.predict(lambda: [{"x": X}])]
    np.testing.assert_allclose(predicted, peer.predict(X, verbose=0), atol=1e-5)
    assert all((old == new).all() for old, new in zip(before, model.get_weights(), strict=True))
    estimator.load_into(model, "keras")
    for own, other in zip(model.get_weights(), peer.get_weights(), strict=True):
        np.testing.assert_allclose(own, other, atol=1e-5)


def test_the_optimizer_goes_on_from_where_it_stands(tmp_path):
    model, peer = classifier(), classifier()
    for one in (model, peer):
        for x, y in BATCHES:
            one.train_on_batch(x, y)
    estimator = tab.model_to_estimator(model, config=quiet(tmp_path)).train(lambda: BATCHES)
    for x, y in BATCHES:
        peer.train_on_batch(x, y)
    estimator.load_into(model, "keras")
    for own, other in zip(model.get_weights(), peer.get_weights(), strict=True):
        np.testing.assert_allclose(own, other, atol=1e-5)


def test_several_inputs_and_outputs(tmp_path):
    left, right = keras.Input((3,), name="left"), keras.Input((3,), name="right")
    joined = keras.layers.Concatenate()([left, right])
    outputs = {"sum": keras.layers.Dense(1, name="sum")(joined), "kind": keras.layers.Dense(1, name="kind")(joined)}
    model = keras.Model({"left": left, "right": right}, outputs)
    losses = {"sum": "mse", "kind": keras.losses.BinaryCrossentropy(from_logits=True)}
    model.compile("sgd", loss=losses, loss_weights={"sum": 0.5, "kind": 2.0}, metrics={"sum": ["mae"]})
    features = {"left": X, "right": X[::-1].copy()}
    labels = {"sum": X.sum(1, keepdims=True), "kind": Y[:, None].astype(np.float32)}
    estimator = tab.model_to_estimator(model, config=quiet(tmp_path), metric_names_map={"sum_mae": "error"})
    expected = model.evaluate(features, labels, batch_size=64, verbose=0, return_dict=True)
    found = estimator.train(lambda: [(features, labels)]).evaluate(lambda: [(features, labels)])
    assert set(found) == {"loss", "error", "global_step"}
    assert found["loss"] < expected["loss"]


def weighted(loss):
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((3,), name="x"), keras.layers.Dense(2, activation="softmax")])
    more = {
        "metrics": ["accuracy"],
        "weighted_metrics": ["accuracy", keras.metrics.SparseCategoricalCrossentropy(name="error")],
    }
    model.compile(optimizer=keras.optimizers.SGD(0.5), loss=loss, **more)
    return model


@pytest.mark.parametrize("loss", ["sparse_categorical_crossentropy", pytest.param("class", marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_weights_are_those_of_fit(tmp_path, loss, shape):
    given = keras.losses.SparseCategoricalCrossentropy() if loss == "class" else loss
    model, peer = weighted(given), weighted(given)
    weights = np.random.default_rng(1).integers(0, 4, 64).astype(np.float32)
    batches = [(x, y, weights[at : at + 16]) for at, (x, y) in zip(range(0, 64, 16), BATCHES, strict=True)]
    estimator = tab.model_to_estimator(model, config=quiet(tmp_path), weight_column="w")
    estimator.train(lambda: [({"x": x, "w": w.reshape(shape)}, y) for x, y, w in batches])
    for x, y, w in batches:
        peer.train_on_batch(x, y, sample_weight=w)
    found = estimator.evaluate(lambda: [({"x": X, "w": weights.reshape(shape)}, Y)])
    expected = peer.evaluate(X, Y, sample_weight=weights, batch_size=64, verbose=0, return_dict=True)
    assert set(found) == {*expected, "global_step"} == {"loss", "accuracy", "weighted_accuracy", "error", "global_step"}
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-5), name
    assert found["accuracy"] != pytest.approx(found["weighted_accuracy"], abs=1e-3)
    predicted = [row[model.layers[-1].name] for row in estimator.predict(lambda: [{"x": X}])]
    np.testing.assert_allclose(predicted, peer.predict(X, verbose=0), atol=1e-5)


def test_weighted_metrics_without_weights(tmp_path):
    model = weighted("sparse_categorical_crossentropy")
    estimator = tab.model_to_estimator(model, config=quiet(tmp_path)).train(lambda: BATCHES)
    found = estimator.evaluate(lambda: [(X, Y)])
    assert found["accuracy"] == found["weighted_accuracy"]


def test_weights_that_cannot_be_used_are_refused(tmp_path):
    for column in ("x", 3, {"sum": "w"}):
        with pytest.raises(ArgumentError, match="weight_column should be the name of one feature that is not an input"):
            tab.model_to_estimator(classifier(), weight_column=column)
    estimator = tab.model_to_estimator(classifier(), config=quiet(tmp_path), weight_column="w")
    with pytest.raises(ModelFnError, match=r"The weight_column 'w' is not among the features: \['x'\]"):
        estimator.train(lambda: [({"x": X}, Y)])
    with pytest.raises(ModelFnError, match=r"'w' must have one number for each example, given: .*\(64, 3\)"):
        estimator.train(lambda: [({"x": X, "w": X}, Y)])


def test_refused(tmp_path):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    with pytest.raises(ArgumentError, match="has not been compiled yet"):
        tab.model_to_estimator(model)
    with pytest.raises(ArgumentError, match="Either `keras_model` or `keras_model_path`"):
        tab.model_to_estimator()
    with pytest.raises(ArgumentError, match=r"metric_names_map names \['mse'\]"):
        tab.model_to_estimator(classifier(), metric_names_map={"mse": "error"})


@pytest.mark.slow
def test_a_saved_model(tmp_path):
    model = classifier()
    model.train_on_batch(X, Y)
    model.save(tmp_path / "model.keras")
    estimator = tab.model_to_estimator(keras_model_path=tmp_path / "model.keras", config=quiet(tmp_path / "m"))
    assert estimator.train(lambda: BATCHES, steps=1).evaluate(lambda: BATCHES)["global_step"] == 1


class Subclass(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(4, activation="tanh")
        self.norm = keras.layers.BatchNormalization()
        self.out = keras.layers.Dense(1)

    def call(self, inputs, training=None):
        return self.out(self.norm(self.hidden(inputs["x"]), training=training))


@pytest.mark.slow
def test_a_subclass_trains_as_fit_does_once_it_was_called(tmp_path):
    model, peer = Subclass(), Subclass()
    for one in (model, peer):
        one.compile(optimizer=keras.optimizers.Adam(0.05), loss=keras.losses.BinaryCrossentropy(from_logits=True))
    with pytest.raises(ArgumentError, match="is not built, so its variables are unknown"):
        tab.model_to_estimator(model)
    for one in (model, peer):
        one({"x": X})
    peer.set_weights(model.get_weights())
    estimator = tab.model_to_estimator(model, config=quiet(tmp_path))
    estimator.train(lambda: [({"x": x}, y[:, None]) for x, y in BATCHES])
    for x, y in BATCHES:
        peer.train_on_batch({"x": x}, y[:, None])
    predicted = [row["output_1"] for row in estimator.predict(lambda: [{"x": X}])]
    np.testing.assert_allclose(predicted, peer.predict({"x": X}, verbose=0), atol=1e-5)
    again = tab.model_to_estimator(model, config=quiet(tmp_path))  # another call continues from its checkpoint
    expected = peer.evaluate({"x": X}, Y[:, None], batch_size=64, verbose=0)
    assert again.evaluate(lambda: [({"x": X}, Y[:, None])])["loss"] == pytest.approx(expected, abs=1e-5)


class Plain(keras.Model):
    """A model whose `call` has no argument `training`."""

    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(4, activation="tanh")
        self.out = keras.layers.Dense(1)

    def call(self, inputs):
        return self.out(self.hidden(inputs["x"]))


def test_a_subclass_that_takes_no_training_trains_as_fit_does(tmp_path):
    model, peer = Plain(), Plain()
    for one in (model, peer):
        one.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse")
        one({"x": X})
    peer.set_weights(model.get_weights())
    estimator = tab.model_to_estimator(model, config=quiet(tmp_path))
    estimator.train(lambda: [({"x": X}, Y[:, None])] * 2)
    for _ in range(2):
        peer.train_on_batch({"x": X}, Y[:, None])
    expected = peer.evaluate({"x": X}, Y[:, None], batch_size=64, verbose=0)
    assert estimator.evaluate(lambda: [({"x": X}, Y[:, None])])["loss"] == pytest.approx(expected, abs=1e-5)


class Two(Plain):
    def call(self, inputs):
        made = super().call(inputs)
        return {"p": made, "q": -made}


@pytest.mark.parametrize(
    "compiled",
    [{"loss": {"p": "mse", "q": "mse"}}, {"loss": ["mse", "mse"]}, {"loss": "mse", "metrics": {"p": ["mae"]}}],
    ids=["losses by name", "a list of losses", "metrics by name"],
)
def test_a_subclass_with_several_outputs_is_refused_when_it_is_made(compiled):
    model = Two()
    model({"x": X})
    model.compile(optimizer="adam", **compiled)
    with pytest.raises(ArgumentError, match=r"several outputs, .* is not supported; make it functional"):
        tab.model_to_estimator(model)


def test_several_outputs_of_one_loss_are_refused_at_the_first_batch(tmp_path):
    model = Two()
    model({"x": X})
    model.compile(optimizer="adam", loss=keras.losses.MeanSquaredError())
    estimator = tab.model_to_estimator(model, config=quiet(tmp_path))
    with pytest.raises(ModelFnError, match=r"make it functional\. The `call` .* returns \['p', 'q'\]"):
        estimator.train(lambda: [({"x": X}, {"p": Y[:, None], "q": Y[:, None]})])
