"""Tests of BaseHead with a user's own head, and of optimizers, summaries and padding with every head."""

from decimal import Decimal
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
import estimator_heads as eh
from estimator_core._export.outputs import PredictOutput
from estimator_core._model.scope import applying
from estimator_core.errors import ArgumentError, InputError
from estimator_core.metrics import applying_example_weights
from estimator_heads.checks import check_thresholds

LOGITS, LABELS = np.array([[1.0], [-2.0]], np.float32), np.array([[1], [0]])
KEYS = {"features": {}, "logits": LOGITS, "labels": LABELS}


class QuantileHead(eh.BaseHead):
    """Defines only the methods that a user has to define."""

    def loss(self, labels, logits, features=None, mode=None, regularization_losses=None):
        error = labels - logits
        return jnp.mean(jnp.maximum(0.9 * error, -0.1 * error))

    def predictions(self, logits, keys=None):
        return {"quantile": jnp.asarray(logits)}

    def metrics(self, features, logits, labels, mode=None, regularization_losses=None):
        return {self.metric_key("covered"): ec.metrics.mean(labels <= logits)}


def test_own_head_has_a_spec_for_every_mode():
    head = QuantileHead(name="q")
    train = head.create_estimator_spec(mode="train", optimizer=optax.sgd(0.1), **KEYS)
    assert float(train.loss) == pytest.approx((0.0 + 0.9 * 2.0) / 2 + 0.0)
    evaluation = head.create_estimator_spec(mode="eval", **KEYS)
    assert evaluation.eval_metric_ops["covered/q"].compute() == 0.5
    predict = head.create_estimator_spec({}, "infer", LOGITS)
    assert list(predict.predictions) == ["quantile"]
    assert isinstance(predict.export_outputs["serving_default"], PredictOutput)
    assert isinstance(head, ec.Head)


def test_optimizer_is_the_train_op():
    optimizer = optax.sgd(0.1)
    spec = eh.BinaryClassHead().create_estimator_spec(mode="train", optimizer=optimizer, **KEYS)
    assert spec.train_op is optimizer


def test_trainable_variables_limit_the_train_op():
    spec = eh.BinaryClassHead().create_estimator_spec(
        mode="train", optimizer=optax.sgd(0.1), trainable_variables=["a/kernel", "b.c"], **KEYS
    )
    assert spec.train_op.variables == r"a/kernel|b\.c"
    assert spec.train_op.loss is spec.loss


def test_train_op_fn_gets_the_regularized_loss():
    seen = []

    def train_op_fn(loss):
        seen.append(float(loss))
        return optax.sgd(0.1)

    head = eh.BinaryClassHead()
    spec = head.create_estimator_spec(mode="train", train_op_fn=train_op_fn, regularization_losses=[2.0], **KEYS)
    assert seen == [float(spec.loss)] == [pytest.approx(float(head.loss(LABELS, LOGITS)) + 2.0)]


def test_update_ops_run_in_training_only():
    calls = []
    head = eh.BinaryClassHead()
    head.create_estimator_spec(mode="eval", update_ops=[lambda: calls.append("eval")], **KEYS)
    head.create_estimator_spec(
        mode="train", optimizer=optax.sgd(0.1), update_ops=[lambda: calls.append("train")], **KEYS
    )
    assert calls == ["train"]


def summaries_of(head, **more):
    with applying({}, {}, mode="train", key=lambda: jax.random.key(0), specs={}) as scope:
        head.create_estimator_spec(mode="train", optimizer=optax.sgd(0.1), **{**KEYS, **more})
    return {name: float(output.value) for name, output in scope.summaries.items()}


def test_summaries_bear_the_name():
    found = summaries_of(eh.BinaryClassHead(name="nm"), regularization_losses=[0.5, 0.25])
    assert found == {
        "loss/nm": pytest.approx(0.75 + float(eh.BinaryClassHead().loss(LABELS, LOGITS))),
        "regularization_loss/nm": 0.75,
    }
    assert summaries_of(eh.BinaryClassHead()) == {}


def test_weight_column_with_a_normalizer():
    class Column:
        key = "w"

        @staticmethod
        def normalizer_fn(weights):
            return weights / 10

    features = {"w": np.array([10, 30])}
    normalised = eh.RegressionHead(weight_column=Column()).loss(LABELS, LOGITS, features)
    plain = eh.RegressionHead(weight_column="w").loss(LABELS, LOGITS, {"w": np.array([[1.0], [3.0]])})
    assert float(normalised) == float(plain)


def test_labels_out_of_range_inside_a_trace_make_the_loss_nan():
    head = eh.MultiClassHead(3)
    loss = jax.jit(head.loss)
    logits = np.zeros((2, 3), np.float32)
    assert np.isfinite(float(loss(np.array([0, 2]), logits)))
    assert np.isnan(float(loss(np.array([0, 3]), logits)))
    metrics = jax.jit(lambda y: head.metrics({}, logits, y))(np.array([0, -1]))
    assert np.isnan(metrics["average_loss"].compute())
    gradient = jax.grad(lambda x: head.loss(jnp.array([0, 2]), x))(logits)
    assert np.isfinite(gradient).all()


def test_padding_counts_neither_in_the_sum_nor_in_the_divisor():
    logits, labels = np.array([[3.0], [np.nan]], np.float32), np.array([[1.0], [0.0]], np.float32)
    for reduction in ("sum", "sum_over_batch_size"):
        head = eh.RegressionHead(loss_reduction=reduction)
        with applying_example_weights(jnp.array([1.0, 0.0])):
            padded = float(head.loss(labels, logits))
        assert padded == float(head.loss(labels[:1], logits[:1])) == 4.0
    with applying_example_weights(jnp.array([0.0, 0.0])):
        assert float(eh.RegressionHead().loss(labels, logits)) == 0.0


HEADS = {
    "binary": (eh.BinaryClassHead(thresholds=[0.5]), np.array([[1], [0]])),
    "multi_class": (eh.MultiClassHead(3), np.array([[1], [0]])),
    "multi_label": (eh.MultiLabelHead(3), np.array([[1, 0, 1], [0, 1, 0]])),
    "logistic": (eh.LogisticRegressionHead(), np.array([[0.25], [0.75]])),
    "ranking": (eh.RankingHead(3), np.array([[1, 0, 2], [0, 1, -1]])),
    "listwise": (eh.RankingHead(3, loss="listwise"), np.array([[1, 0, 2], [0, 1, -1]])),
    "token": (eh.TokenClassificationHead(3), np.array([[1, -100], [0, 2]])),
}


@pytest.mark.parametrize("dtype", [pytest.param(jnp.float32, marks=pytest.mark.slow), jnp.bfloat16])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("name", HEADS)
def test_logits_of_ten_thousand_through_a_head(name, sign, dtype):
    head, labels = HEADS[name]
    shape = (2, 2, 3) if name == "token" else (2, head.logits_dimension)
    logits = jnp.resize(jnp.asarray([1e4, -1e4, 0.0], dtype), shape) * jnp.asarray(sign, dtype)
    loss, gradient = jax.value_and_grad(lambda x: head.loss(labels, x))(logits)
    assert loss.dtype == jnp.float32
    assert gradient.dtype == dtype
    assert np.isfinite(float(loss))
    assert np.isfinite(np.asarray(gradient, np.float32)).all()
    for key, value in head.predictions(logits).items():
        assert np.isfinite(np.asarray(value, np.float32)).all(), key
    for key, metric in head.metrics({}, logits, labels).items():
        assert np.isfinite(metric.compute()), key


def test_loss_options_and_loss_fn_exclude_each_other():
    with pytest.raises(ArgumentError, match="loss_options"):
        eh.BinaryClassHead(loss_fn=lambda labels, logits: logits, loss_options=eh.LossOptions(focal_gamma=1.0))
    with pytest.raises(ArgumentError, match="class_weights has 2 values for 3 classes"):
        eh.MultiClassHead(3, loss_options=eh.LossOptions(class_weights=(1.0, 2.0)))


@pytest.mark.parametrize("name", ["", 3])
def test_bad_names_are_refused(name):
    with pytest.raises(ArgumentError, match="name of a head"):
        eh.BinaryClassHead(name=name)


@pytest.mark.parametrize("one", [0.5, "0.5", np.float32(0.5), np.array(0.5)])
def test_one_threshold_is_a_list(one):
    with pytest.raises(ArgumentError, match=r"thresholds must be a list, such as \[0\.3, 0\.5\]\. Given: .*0\.5"):
        eh.BinaryClassHead(thresholds=one)
    assert check_thresholds(np.array([0.25, 0.5])) == check_thresholds([0.25, 0.5]) == (0.25, 0.5)


def test_multi_head_keys_select_predictions():
    head = eh.MultiHead([eh.BinaryClassHead(name="a"), eh.RegressionHead(name="b")])
    logits = np.array([[1.0, 2.0]])
    assert set(head.predictions(logits, keys=[("a", "logistic"), ("b", "predictions")])) == {
        ("a", "logistic"),
        ("b", "predictions"),
    }
    with pytest.raises(ArgumentError, match="Prediction keys of a MultiHead"):
        head.predictions(logits, keys=["logistic"])
    with pytest.raises(ArgumentError, match="Prediction key must be in"):
        head.predictions(logits, keys=[("a", "nothing")])


def test_losses_of_a_multi_head_are_weighted():
    heads = [eh.RegressionHead(name="a"), eh.RegressionHead(name="b")]
    logits = {"a": np.array([[1.0], [3.0]]), "b": np.array([[2.0], [2.0]])}
    labels = {"a": np.zeros((2, 1)), "b": np.zeros((2, 1))}
    assert float(eh.MultiHead(heads).loss(labels, logits)) == pytest.approx(5.0 + 4.0)
    assert float(eh.MultiHead(heads, head_weights=[0.5, 2.0]).loss(labels, logits)) == pytest.approx(2.5 + 8.0)


@pytest.mark.parametrize("weight", [-0.5, float("nan"), float("inf"), "much", None])
def test_a_weight_of_a_head_is_a_finite_number_from_0(weight):
    heads = [eh.RegressionHead(name="price"), eh.RegressionHead(name="share")]
    with pytest.raises(ArgumentError, match=r"at least 0\. Given for the head 'share': "):
        eh.MultiHead(heads, head_weights=[1.0, weight])
    labels, logits = {"price": np.zeros((1, 1)), "share": np.ones((1, 1))}, np.array([[1.0, 9.0]])
    assert float(eh.MultiHead(heads, head_weights=np.array([0.5, 0])).loss(labels, logits)) == 0.5


def test_an_object_that_is_infinite_as_float32_is_no_label():
    contract = eh.HeadContract(eh.RegressionHead())
    labels = np.array([Decimal("1.5"), Decimal("1e39")], object)
    batches, convert = contract.open([({}, labels)], mode="train", memory=Path("none"), check=True)
    with pytest.raises(InputError, match=r"Labels hold inf in row 1 of batch 1, .*: it is not finite"):
        convert(batches[0])


def test_labels_that_are_strings_need_what_the_error_names(tmp_path):
    """The transforms of a head without a vocabulary do not convert strings to ids."""
    x, kinds = np.ones((6, 1), np.float32), np.array(["ape", "bee", "cat"] * 2)
    rows = ec.inputs.numpy_input_fn({"x": x}, kinds, batch_size=3, shuffle=False)

    def train(head, folder):
        def model_fn(features, labels, mode):
            logits = features["x"] @ ec.get_variable("kernel", (1, 3))
            return head.create_estimator_spec(features, mode, logits, labels, optimizer=optax.sgd(0.1))

        ec.Estimator(model_fn, str(tmp_path / folder), label_transforms=head.label_transforms()).train(rows)

    with pytest.raises(ArgumentError, match=r"give the head label_vocabulary=\[\.\.\.\] and the Estimator label_tr"):
        train(eh.MultiClassHead(3), "without")
    train(eh.MultiClassHead(3, label_vocabulary=["ape", "bee", "cat"]), "with")
