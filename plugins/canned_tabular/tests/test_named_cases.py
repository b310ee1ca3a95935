"""Cases 21 to 37: small models computed by hand in the tests of tf.estimator, or run with it."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from plugins.canned_tabular.tests.given_weights import QUIET, checkpoint_of, inputs

NETWORK = {
    "dnn/hiddenlayer_0/kernel": [[0.6, 0.5]],
    "dnn/hiddenlayer_0/bias": [0.1, -0.1],
    "dnn/hiddenlayer_1/kernel": [[1.0, 0.8], [-0.8, -1.0]],
    "dnn/hiddenlayer_1/bias": [0.2, -0.2],
    "dnn/logits/kernel": [[-1.0], [1.0]],
    "dnn/logits/bias": [0.3],
}
WIDER = {
    **NETWORK,
    "dnn/hiddenlayer_0/kernel": [[0.6, 0.5], [-0.6, -0.5]],
    "dnn/logits/kernel": [[-1.0, 1.0, 0.5], [-1.0, 1.0, 0.5]],
    "dnn/logits/bias": [0.3, -0.3, 0.0],
}


@pytest.fixture
def given(tmp_path):
    """Makes an estimator with given weights, trained for one step at rate zero."""

    def make(kind, values, features, labels, **arguments):
        arrays = {name: np.asarray(value, np.float32) for name, value in values.items()}
        start = checkpoint_of(arrays, tmp_path / "given")
        config = ec.RunConfig(model_dir=str(tmp_path / "model"), tf_random_seed=0, **QUIET)
        still = {name: optax.sgd(0.0) for name in arguments.pop("optimizers", ["optimizer"])}
        if kind.__name__.startswith("Baseline"):
            estimator = ec.Estimator(
                tab.baseline_model_fn(arguments["head"], optax.sgd(0.0)), config=config, warm_start_from=start
            )
        else:
            estimator = kind(config=config, warm_start_from=start, **still, **arguments)
        estimator.first_loss = FirstLoss()
        return estimator.train(inputs(features, labels), hooks=[estimator.first_loss], steps=1)

    return make


class FirstLoss(ec.Hook):
    """Keeps the loss of the training step."""

    value = None

    def begin(self, run):
        run.fetch("loss")

    def after_step(self, run, step, out):
        self.value = float(out["loss"])


@pytest.mark.slow
def test_21_22_dnn_regression(given):
    x, y = {"age": [[10.0]]}, np.array([[1.0]], np.float32)
    net = given(tab.DNNRegressor, NETWORK, x, y, hidden_units=[2, 2], feature_columns=[tab.numeric_column("age")])
    found = net.evaluate(inputs(x, y))
    assert found["loss"] == pytest.approx(9.4864, abs=1e-5)
    assert found["average_loss"] == pytest.approx(9.4864, abs=1e-5)
    assert found["prediction/mean"] == pytest.approx(-2.08, abs=1e-5)
    (prediction,) = net.predict(inputs(x))
    assert prediction["predictions"].tolist() == pytest.approx([-2.08], abs=1e-5)


@pytest.mark.slow
def test_21_23_dnn_classification(given):
    x, y = {"age": [[10.0], [10.0]]}, np.array([[1], [0]])
    net = given(tab.DNNClassifier, NETWORK, x, y, hidden_units=[2, 2], feature_columns=[tab.numeric_column("age")])
    found = net.evaluate(inputs(x, y))
    expected = {"loss": 1.157721, "accuracy": 0.5, "precision": 0.0, "recall": 0.0, "auc": 0.5}
    expected |= {"auc_precision_recall": 0.5, "prediction/mean": 0.11105597}
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=1e-5)
    first = next(iter(net.predict(inputs(x))))
    assert first["logits"].tolist() == pytest.approx([-2.08], abs=1e-5)
    assert first["probabilities"][1] == pytest.approx(0.11105597, abs=1e-5)


@pytest.mark.parametrize(("weight", "loss"), [(None, 1.4643), (10.0, 14.643)])
def test_24_several_logits_and_a_weight(given, weight, loss):
    columns = [tab.numeric_column("age"), tab.numeric_column("height")]
    x, y = {"age": [[10.0]], "height": [[8.0]]}, np.array([[1.0, -1.0, 0.5]], np.float32)
    more = {} if weight is None else {"weight_column": "weight"}
    x |= {} if weight is None else {"weight": [[weight]]}
    net = given(tab.DNNRegressor, WIDER, x, y, hidden_units=[2, 2], feature_columns=columns, label_dimension=3, **more)
    found = net.evaluate(inputs(x, y))
    assert found["loss"] == pytest.approx(loss, abs=1e-5)
    assert found["prediction/mean"] == pytest.approx(0.13, abs=1e-5)
    (prediction,) = net.predict(inputs(x))
    assert prediction["predictions"].tolist() == pytest.approx([-0.48, 0.48, 0.39], abs=1e-5)


def test_25_batch_normalisation(given, tmp_path):
    values = {
        "dnn/hiddenlayer_0/kernel": [[0.6, 0.5]],
        "dnn/hiddenlayer_0/bias": [1.0, -1.0],
        "dnn/logits/kernel": [[-1.0], [2.0]],
        "dnn/logits/bias": [0.3],
    }
    x, y = {"age": np.array([[10.0], [20.0]], np.float32)}, np.zeros((2, 1), np.float32)
    columns = [tab.numeric_column("age")]
    net = given(tab.DNNRegressor, values, x, y, hidden_units=[2], feature_columns=columns, batch_norm=True)
    in_training = -0.699895571, 1.299895571
    assert net.first_loss.value == pytest.approx(np.mean(np.square(in_training)), abs=1e-5)
    moved = net.variables
    assert moved["dnn/hiddenlayer_0/batchnorm_0/moving_mean"].tolist() == pytest.approx([0.0100, 0.0065], abs=1e-6)
    still = {name: value for name, value in moved.items() if "moving" not in name}
    start = checkpoint_of(still, tmp_path / "still")
    config = ec.RunConfig(model_dir=str(tmp_path / "untrained"), allow_untrained=True, **QUIET)
    fresh = tab.DNNRegressor([2], columns, config=config, warm_start_from=start, batch_norm=True)
    found = [row["predictions"][0] for row in fresh.predict(inputs(x))]
    assert found == pytest.approx([1.299500375, 5.297501873], abs=1e-5)


LINE = {"linear/linear_model/age/weights": [[11.0]], "linear/linear_model/bias_weights": [2.0]}


@pytest.mark.parametrize(
    ("batch", "weights", "expected"),
    [
        (1, None, {"loss": 9.0, "average_loss": 9.0}),
        (2, None, {"loss": 9.0, "average_loss": 9.0}),
        (2, [1.0, 2.0], {"loss": 13.5, "average_loss": 9.0}),
    ],
)
def test_26_linear_regression(given, batch, weights, expected):
    x, y = {"age": np.ones((batch, 1), np.float32)}, np.full((batch, 1), 10.0, np.float32)
    more = {} if weights is None else {"weight_column": "w"}
    x |= {} if weights is None else {"w": np.asarray(weights, np.float32)[:, None]}
    line = given(tab.LinearRegressor, LINE, x, y, feature_columns=[tab.numeric_column("age")], **more)
    found = line.evaluate(inputs(x, y))
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=1e-5)
    assert next(iter(line.predict(inputs(x))))["predictions"].tolist() == [13.0]


def test_27_linear_of_three_dimensions(given):
    values = {
        "linear/linear_model/age/weights": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        "linear/linear_model/bias_weights": [7.0, 8.0],
    }
    x, y = {"age": [[2.0, 4.0, 5.0]]}, np.array([[46.0, 58.0]], np.float32)
    columns = [tab.numeric_column("age", shape=3)]
    line = given(tab.LinearRegressor, values, x, y, feature_columns=columns, label_dimension=2)
    (prediction,) = line.predict(inputs(x))
    assert prediction["predictions"].tolist() == pytest.approx([46.0, 58.0], abs=1e-5)


def test_28_baseline(given):
    from estimator_heads import RegressionHead

    x = {"age": np.ones((2, 1), np.float32), "w": np.array([[1.0], [2.0]], np.float32)}
    y = np.full((2, 1), 10.0, np.float32)
    head = RegressionHead(weight_column="w")
    found = given(tab.BaselineEstimator, {"baseline/bias": [13.0]}, x, y, head=head).evaluate(inputs(x, y))
    expected = {"loss": 13.5, "average_loss": 9.0, "prediction/mean": 13.0}
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=1e-5)


def test_29_combined(given):
    values = {
        "linear/linear_model/age/weights": [[1.0]],
        "linear/linear_model/bias_weights": [2.0],
        "dnn/hiddenlayer_0/kernel": [[3.0]],
        "dnn/hiddenlayer_0/bias": [4.0],
        "dnn/logits/kernel": [[5.0]],
        "dnn/logits/bias": [6.0],
    }
    age = [tab.numeric_column("age")]
    x, y = {"age": [[10.0]]}, np.array([[188.0]], np.float32)
    net = given(
        tab.DNNLinearCombinedRegressor,
        values,
        x,
        y,
        optimizers=["linear_optimizer", "dnn_optimizer"],
        linear_feature_columns=age,
        dnn_feature_columns=age,
        dnn_hidden_units=[1],
    )
    assert next(iter(net.predict(inputs(x))))["predictions"].tolist() == pytest.approx([10 * 1 + 2 + 176])


def quiet(tmp_path):
    return ec.RunConfig(model_dir=str(tmp_path), **QUIET)


def test_30_a_step_of_linear_regression(tmp_path):
    x, y = {"age": [[1.0], [2.0]]}, np.array([[10.0], [20.0]], np.float32)
    line = tab.LinearRegressor([tab.numeric_column("age")], optimizer=optax.sgd(0.01), config=quiet(tmp_path))
    found = line.train(inputs(x, y), steps=1).variables
    assert found["linear/linear_model/age/weights"].item() == pytest.approx(0.5, abs=1e-5)
    assert found["linear/linear_model/bias_weights"].item() == pytest.approx(0.3, abs=1e-5)
    metrics = line.evaluate(inputs(x, y))
    assert metrics["loss"] == pytest.approx(217.16501, abs=1e-4)
    assert metrics["prediction/mean"] == pytest.approx(1.05, abs=1e-5)


def test_31_32_linear_classification(tmp_path):
    x, y = {"age": [[1.0], [2.0]]}, np.array([[0], [1]])
    config = quiet(tmp_path / "a").replace(allow_untrained=True)
    line = tab.LinearClassifier([tab.numeric_column("age")], config=config)
    before = line.evaluate(inputs(x, y))
    expected = {"loss": 0.6931472, "auc": 0.5, "precision": 0.0}
    assert {key: before[key] for key in expected} == pytest.approx(expected, abs=1e-5)
    found = line.train(inputs(x, y), steps=1).variables
    assert found["linear/linear_model/age/weights"].item() == pytest.approx(0.12403473, abs=1e-5)
    assert found["linear/linear_model/bias_weights"].item() == pytest.approx(0.0, abs=1e-5)
    assert line.evaluate(inputs(x, y))["loss"] == pytest.approx(0.66693574, abs=1e-5)


@pytest.mark.parametrize(
    ("optimizer", "start", "values"),
    [
        (lambda: tab.choose_optimizer("Adagrad", 0.05), 1.0, [0.950613, 0.915477, 0.886729]),
        (lambda: tab.choose_optimizer("Adagrad", 0.05), 0.0, [-0.049386, -0.084523, -0.113271]),
        (lambda: tab.choose_optimizer("Adagrad", None), 1.0, [0.999012, 0.998310, 0.997735]),
        (lambda: tab.choose_optimizer("Ftrl", 0.2), 1.0, [0.646280, 0.505735, 0.390743]),
        (lambda: tab.choose_optimizer("Ftrl", 0.2), 0.0, [-0.197546, -0.338092, -0.453083]),
        (lambda: tab.choose_optimizer(_l1, None), 0.0, [-0.074080, -0.144353, -0.201849]),
        (lambda: tab.choose_optimizer(_l1, None), 1.0, [0.720360, 0.650087, 0.592591]),
    ],
)
def test_33_to_36_three_steps_of_an_optimizer(optimizer, start, values):
    transformation = optimizer().transformation
    weight = jnp.float32(start)
    state, found = transformation.init(weight), []
    for _ in values:
        change, state = transformation.update(jnp.float32(2.0), state, weight)
        weight = optax.apply_updates(weight, change)
        found.append(float(weight))
    assert found == pytest.approx(values, abs=1e-5)


def _l1():
    from estimator_heads import ftrl

    return ftrl(0.1, l1_regularization_strength=0.5)


def test_37_baseline_of_three_classes(tmp_path):
    x, y = {"age": [[1.0], [2.0]]}, np.array([[0], [2]])
    baseline = tab.BaselineClassifier(n_classes=3, config=quiet(tmp_path)).train(inputs(x, y, 100))
    assert baseline.variables["baseline/bias"].tolist() == pytest.approx([1.5627987, -2.0516658, 1.5627987], abs=1e-5)
    first = next(iter(baseline.predict(inputs(x))))
    assert first["probabilities"].tolist() == pytest.approx([0.4933566, 0.0132868, 0.4933566], abs=1e-5)
