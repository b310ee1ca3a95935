"""Tests of permutation importance: against scikit-learn, by groups, and without changes in the model_dir."""

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from explained_program import LABELS, ROWS, input_fn, model_fn, trained

import estimator_core as ec
from estimator_core.errors import ArgumentError, CheckpointNotFoundError, InputError
from estimator_core.plugins import Plugins
from estimator_explain import Importance, integrated_gradients, permutation_importance
from estimator_explain.fingerprint import FINGERPRINT, with_fingerprint
from estimator_explain.rows import read_rows


@pytest.fixture(scope="module")
def estimator(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("explained"))


def test_features_that_matter_come_first_and_one_that_does_not_is_zero(estimator):
    found = permutation_importance(estimator, input_fn(), repeats=3)
    assert [one.features for one in found if one.metric == "loss"][-1] == ("useless",)
    by_name = {one.name: one for one in found if one.metric == "loss"}
    assert set(by_name) == {"x", "useless", "word"}
    assert by_name["useless"].losses == (0.0, 0.0, 0.0)
    assert by_name["x"].interval[0] > 1.0
    assert by_name["word"].mean > 1.0


def test_hooks_that_packages_add_to_every_run_change_the_rows_as_in_any_evaluation(tmp_path):
    class Doubling:
        ESTIMATOR_PLUGIN_API = (1, 2)

        def estimator_capabilities(self):
            return ["adds_hooks", "changes_batches"]

        def estimator_run_hooks(self, run):
            run.transform_batches(lambda features, labels: ({"x": features["x"] * 2}, labels))
            return []

    def line(features, labels, mode):
        y = features["x"] * ec.get_variable("slope", (), initializer=jax.nn.initializers.ones)
        loss = jnp.mean((y - labels) ** 2)
        return ec.EstimatorSpec(mode, predictions={"y": y}, loss=loss, train_op=optax.sgd(0.0))

    x = np.linspace(-1, 1, 8, dtype=np.float32)
    plugins = Plugins(autoload=False, environ={}, extra=[Doubling()])
    estimator = ec.Estimator(line, str(tmp_path), plugins=plugins).train(lambda: [({"x": x}, x)])
    (one,) = permutation_importance(estimator, lambda: [({"x": x}, x)], repeats=2)
    assert one.baseline == estimator.evaluate(lambda: [({"x": x}, x)])["loss"] == pytest.approx(np.mean(x * x))


def test_it_is_the_importance_of_scikit_learn(estimator):
    sklearn = pytest.importorskip("sklearn.inspection")
    slope = float(estimator.get_variable_value("slope"))

    class Model:
        """The same function, for scikit-learn."""

        def fit(self, rows, labels):
            return self

        def score(self, rows, labels):
            return -float(np.mean((3 * rows[:, 0] ** 2 + slope * rows[:, 1] - labels) ** 2))

    rows = np.stack([ROWS["x"], np.char.str_len(ROWS["word"])], axis=1)
    theirs = sklearn.permutation_importance(Model(), rows, LABELS, n_repeats=200, random_state=0)
    ours = permutation_importance(estimator, input_fn(96), features=["x", "word"], metrics=["loss"], repeats=30)
    by_name = {one.name: one for one in ours}
    for index, name in enumerate(("x", "word")):
        spread = 4 * theirs.importances_std[index] / np.sqrt(30)
        assert by_name[name].mean == pytest.approx(theirs.importances_mean[index], abs=spread)


def test_the_batch_size_does_not_matter(estimator):
    arguments = {"features": ["x"], "metrics": ["loss"], "repeats": 2}
    (whole,) = permutation_importance(estimator, input_fn(96), **arguments)
    (parts,) = permutation_importance(estimator, input_fn(48), **arguments)
    np.testing.assert_allclose(whole.losses, parts.losses, rtol=1e-5)


def test_an_importance_that_is_not_a_number_leaves_the_others_in_order(tmp_path):
    def model_fn(features, labels, mode):
        odd = jnp.sqrt(features["odd"] - labels) * ec.get_variable("one", (), initializer=jax.nn.initializers.ones)
        loss = jnp.mean(odd + 0.1 * (features["small"] - labels) ** 2 + (features["large"] - labels) ** 2)
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.0))

    numbers = np.arange(8, dtype=np.float32)
    batch = dict.fromkeys(("small", "odd", "large"), numbers), numbers
    estimator = ec.Estimator(model_fn, str(tmp_path)).train(lambda: [batch], steps=1)
    found = permutation_importance(estimator, lambda: [batch], metrics=["loss"], repeats=2)
    assert [one.name for one in found] == ["large", "small", "odd"]
    assert math.isnan(found[-1].mean)


class _Parity:
    """A host transform of 64-bit ids."""

    name, version, files = "parity", 1, {}

    def config(self):
        return {}

    def apply(self, batch):
        return {**batch, "id": (batch["id"] % 2).astype(np.float32)}


def test_ids_of_64_bits_and_labels_by_name_stay_what_the_input_yields(tmp_path):
    def model_fn(features, labels, mode):
        y = features["id"] * ec.get_variable("slope", (), initializer=jax.nn.initializers.ones)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"y": y})
        loss = jnp.mean((y - labels["labels"]) ** 2)
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.0))

    ids = np.arange(2**40, 2**40 + 64)
    batch = {"id": ids}, {"labels": (ids % 2).astype(np.float32)}
    estimator = ec.Estimator(model_fn, str(tmp_path), host_transforms=[_Parity()]).train(lambda: [batch])
    (found,) = permutation_importance(estimator, lambda: [batch], repeats=3)
    assert (found.name, found.baseline, found.mean > 0.3) == ("id", 0.0, True)


F = np.arange(6.0, dtype=np.float32)


@pytest.mark.parametrize(
    ("batches", "told"),
    [
        ([({"a": F[:3], "z": F[:2]}, F[:3]), ({"a": F[3:], "z": F[3:]}, F[3:])], "3 examples in feature 'a' and 2 in"),
        ([({"a": F, "b": F}, F), ({"a": F}, F)], "feature 'b' missing"),
        ([({"a": F}, F), ({"a": F, "b": F}, F)], "feature 'b' new"),
        ([({"a": F}, F), ({"a": F.astype(np.int64)}, F)], "The dtype of feature 'a' changed"),
        ([({"a": F}, {"y": F}), ({"a": F}, {"x": F})], "label 'y' missing"),
    ],
)
def test_batches_are_checked_as_in_an_evaluation(batches, told, estimator):
    with pytest.raises(InputError, match=told):
        read_rows(estimator, lambda: batches, 12)


def test_lists_of_texts_are_features_and_labels(estimator):
    rows = read_rows(estimator, ec.inputs.from_iterable([({"a": F, "t": list("abcdef")}, list("uvwxyz"))]), 4)
    assert rows.features["t"].tolist() == list("abcd")
    assert rows.labels.tolist() == list("uvwx")


@pytest.mark.parametrize("name", ["labels", "labels/x"])
@pytest.mark.parametrize("in_words", [True, False])
def test_a_feature_may_be_called_labels(name, in_words, tmp_path):
    def model_fn(features, labels, mode):
        y = features["length"] * ec.get_variable("slope", (), initializer=jax.nn.initializers.ones)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"y": y})
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - 2.0) ** 2), train_op=optax.sgd(0.0))

    class Length:
        name, version, files = "length", 1, {}

        def config(self):
            return {}

        def apply(self, batch):
            return {"length": np.char.str_len(batch[key].astype(str)).astype(np.float32)}

    key, numbers = name, np.arange(8)
    words = np.array(["a", "abc"])[numbers % 2]
    batch = {key: words}, words if in_words else numbers
    estimator = ec.Estimator(model_fn, str(tmp_path), host_transforms=[Length()]).train(lambda: [batch])
    (found,) = permutation_importance(estimator, lambda: [batch], repeats=2)
    assert (found.name, found.baseline) == (name, 1.0)


def test_rows_that_the_input_marks_as_padding_are_left_out_and_the_mark_is_no_feature(tmp_path):
    """Batches of BERT hold `is_real_example`, as those of the original."""

    def marked(features, labels, mode):
        y = features["x"] * ec.get_variable("slope", (), initializer=jax.nn.initializers.ones)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"logits": y})
        real = features["is_real_example"]
        return ec.EstimatorSpec(mode, loss=jnp.sum((y - labels) ** 2 * real) / real.sum(), train_op=optax.sgd(0.0))

    real = np.array([1, 1, 1, 1, 1, 0, 0, 0], np.float32)
    numbers = np.where(real > 0, np.arange(8), 1e6).astype(np.float32)
    batch = {"x": numbers, "is_real_example": real}, numbers
    estimator = ec.Estimator(marked, str(tmp_path)).train(lambda: [batch])
    (found,) = permutation_importance(estimator, lambda: [batch], repeats=5)
    assert (found.name, found.baseline) == ("x", 0.0)
    assert max(found.losses) < 16
    parts = integrated_gradients(estimator, lambda: [batch], baseline="zero")
    assert {name: value.tolist() for name, value in parts.values.items()} == {"x": numbers[:5].tolist()}


class _OfOneLength:
    """A host transform that refuses rows whose two lengths differ."""

    name, version, files = "of one length", 1, {}

    def config(self):
        return {}

    def apply(self, batch):
        if (batch["a"] != batch["b"]).any():
            raise InputError("All sequences of an example must have the same length.")
        return batch


def test_features_that_belong_together_are_named_if_they_are_shuffled_apart(tmp_path):
    def of_two(features, labels, mode):
        y = (features["a"] + features["b"]) * ec.get_variable("slope", (), initializer=jax.nn.initializers.ones)
        return ec.EstimatorSpec(mode, predictions=y, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.0))

    batch = {"a": F, "b": F}, F
    estimator = ec.Estimator(of_two, str(tmp_path), host_transforms=[_OfOneLength()]).train(lambda: [batch])
    words = r"while a is shuffled: All sequences .* same length\. Features that belong together.*--features a,b\.$"
    with pytest.raises(ArgumentError, match=words):
        permutation_importance(estimator, lambda: [batch])
    (found,) = permutation_importance(estimator, lambda: [batch], features=[("a", "b")])
    assert found.mean > 1.0


def test_a_group_is_shuffled_together(estimator):
    found = permutation_importance(estimator, input_fn(), features=[("x", "word"), "x"], metrics=["loss"], repeats=1)
    assert {one.features for one in found} == {("x", "word"), ("x",)}
    pair, alone = sorted(found, key=lambda one: -len(one.features))
    assert pair.losses != alone.losses


def test_more_is_better_for_other_metrics(tmp_path):
    def with_share(features, labels, mode):
        spec = model_fn(features, labels, mode)
        if mode != ec.ModeKeys.EVAL:
            return spec
        near = (abs(spec.predictions["logits"] - labels) < 1.0).astype(np.float32)
        return ec.EstimatorSpec(mode, loss=spec.loss, eval_metric_ops={"near": ec.metrics.mean(near)})

    trained(tmp_path)
    with_share.host_transforms = model_fn.host_transforms
    found = permutation_importance(
        ec.Estimator(with_share, str(tmp_path)), input_fn(), features=["x"], metrics=["near"], repeats=2
    )
    assert 0 < found[0].mean <= found[0].baseline


def test_a_column_that_only_weighs_rows_is_left_out_unless_it_is_named(tmp_path, caplog):
    def weighed(features, labels, mode):
        y = features["x"] * ec.get_variable("slope", (), initializer=jax.nn.initializers.ones) + 0.0 * features["read"]
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"y": y})
        weights = features["weight"]
        loss = jnp.sum(weights * (y - labels) ** 2) / jnp.sum(weights)
        rare = {"rare": y, "count": jnp.asarray(features["rare"] > 0, jnp.int32)}
        return ec.EstimatorSpec(mode, predictions=rare, loss=loss, train_op=optax.sgd(0.0))

    rng = np.random.default_rng(0)
    features = {name: rng.normal(size=64).astype(np.float32) for name in ("x", "read", "weight", "unread")}
    batch = {**features, "weight": features["weight"] ** 2, "rare": np.eye(64, dtype=np.float32)[7]}, features["read"]
    estimator = ec.Estimator(weighed, str(tmp_path)).train(lambda: [batch])
    found = permutation_importance(estimator, lambda: [batch], repeats=2)
    assert {one.name for one in found} == {"x", "read", "unread", "rare"}
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warned == ["weight is not explained: it changes metrics, but no prediction."]
    (named,) = permutation_importance(estimator, lambda: [batch], features=["weight"], repeats=2)
    assert named.losses != (0.0, 0.0)


def test_a_feature_that_changes_no_class_is_explained(tmp_path):
    def sure(features, labels, mode):
        y = features["x"] * ec.get_variable("slope", (), initializer=jax.nn.initializers.ones) + 0.1 * features["weak"]
        loss = None if mode == ec.ModeKeys.PREDICT else jnp.mean((y - labels) ** 2)
        classes = (y > 0).astype(jnp.int32)
        return ec.EstimatorSpec(mode, predictions={"class": classes}, loss=loss, train_op=optax.sgd(0.0))

    x, weak = np.array([-9, 9] * 8, np.float32), np.linspace(-1, 1, 16, dtype=np.float32)
    batch = {"x": x, "weak": weak}, x + 0.1 * weak
    estimator = ec.Estimator(sure, str(tmp_path)).train(lambda: [batch])
    found = permutation_importance(estimator, lambda: [batch], repeats=2)
    assert {one.name: one.mean > 0 for one in found} == {"x": True, "weak": True}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1 + 2j, 1 + 3j),
        (np.float64(1), np.nextafter(np.float64(1), 2)),
        (0.0, -0.0),
        (np.int64(1), np.int64(1 + 2**32)),
        (True, False),
    ],
)
def test_a_fingerprint_differs_if_any_bit_does(one, other):
    def made(value):
        def model_fn(features, labels, mode, config):
            predictions = {"value": jnp.asarray(value), "real": jnp.ones(()), "key": jax.random.key(0)}
            return ec.EstimatorSpec(mode, loss=jnp.zeros(()), predictions=predictions)

        return float(with_fingerprint(model_fn)({}, {}, "eval", None).eval_metric_ops[FINGERPRINT].compute())

    with jax.enable_x64(True):
        assert made(one) == made(one) != made(other)


def test_a_model_without_features_has_nothing_to_explain(tmp_path):
    def constant(features, labels, mode):
        y = ec.get_variable("level", ()) + jnp.zeros_like(features["weight"])
        loss = None if mode == ec.ModeKeys.PREDICT else jnp.mean(features["weight"] * (y - labels) ** 2)
        return ec.EstimatorSpec(mode, predictions={"y": y}, loss=loss, train_op=optax.sgd(0.0))

    batch = {"weight": F}, F
    estimator = ec.Estimator(constant, str(tmp_path)).train(lambda: [batch])
    with pytest.raises(ArgumentError, match="No feature changes a prediction"):
        permutation_importance(estimator, lambda: [batch], repeats=2)


def test_less_of_an_error_is_better_and_the_user_may_say_otherwise(tmp_path):
    """Names of results of the data, also of a named head, are not metrics."""

    def with_metrics(features, labels, mode):
        spec = model_fn(features, labels, mode)
        if mode != ec.ModeKeys.EVAL:
            return spec
        distance = abs(spec.predictions["logits"] - labels)
        named = {"mae": distance, "wrongness": distance, "label/mean/click": labels, "probability_mean/class0": labels}
        metrics = {name: ec.metrics.mean(value) for name, value in named.items()}
        return ec.EstimatorSpec(mode, loss=spec.loss, eval_metric_ops=metrics)

    trained(tmp_path)
    with_metrics.host_transforms = model_fn.host_transforms
    estimator = ec.Estimator(with_metrics, str(tmp_path))
    found = permutation_importance(estimator, input_fn(), features=["x"], repeats=1)
    by_metric = {one.metric: one.mean for one in found}
    assert set(by_metric) == {"loss", "mae", "wrongness"}
    assert by_metric["mae"] > 0 > by_metric["wrongness"]
    (said,) = permutation_importance(estimator, input_fn(), features=["x"], metrics=["wrongness:min"], repeats=1)
    assert said.mean == -by_metric["wrongness"]


def test_nothing_is_written(tmp_path):
    estimator = trained(tmp_path)
    before = {path: path.read_bytes() for path in Path(tmp_path).rglob("*") if path.is_file()}
    permutation_importance(estimator, input_fn(), repeats=1)
    assert {path: path.read_bytes() for path in Path(tmp_path).rglob("*") if path.is_file()} == before


def test_the_same_seed_computes_the_same(estimator):
    once, again = (permutation_importance(estimator, input_fn(), repeats=1, seed=3) for _ in range(2))
    assert once == again
    assert once != permutation_importance(estimator, input_fn(), repeats=1, seed=4)


def test_rows_are_limited(estimator):
    (found,) = permutation_importance(estimator, input_fn(), features=["x"], metrics=["loss"], repeats=1, rows=50)
    first = ec.inputs.numpy_input_fn({n: v[:50] for n, v in ROWS.items()}, LABELS[:50], batch_size=40, shuffle=False)
    assert found.baseline == pytest.approx(estimator.evaluate(first)["loss"], rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"features": ["age"]}, r"There are no features \['age'\]. The input has \['useless', 'word', 'x'\]"),
        ({"metrics": ["auc"]}, r"There are no metrics \['auc'\]. The evaluation has \['loss'\]"),
        ({"repeats": 0}, "repeats must be at least 1, given: 0"),
        ({"rows": 0}, "rows must be at least 1, given: 0"),
        ({"seed": -1}, "seed must be at least 0, given: -1"),
    ],
)
def test_wrong_arguments_are_refused(estimator, arguments, words):
    with pytest.raises(ArgumentError, match=words):
        permutation_importance(estimator, input_fn(), **arguments)


def test_an_untrained_model_is_refused(tmp_path):
    with pytest.raises(CheckpointNotFoundError, match="Train first"):
        permutation_importance(ec.Estimator(model_fn, str(tmp_path)), input_fn())


def test_features_without_names_are_refused(estimator):
    bare = ec.inputs.numpy_input_fn(ROWS["x"], LABELS, batch_size=40, shuffle=False)
    with pytest.raises(ArgumentError, match="flat dict of arrays"):
        permutation_importance(estimator, bare)


def test_an_empty_input_is_refused(estimator):
    with pytest.raises(ArgumentError, match="The input is empty"):
        permutation_importance(estimator, lambda: iter(()))


def test_several_processes_are_refused_before_they_connect(tmp_path):
    """In a program under `estimator launch`, no process has connected yet, so jax still knows only one process."""
    config = ec.RunConfig(processes=ec.Processes("localhost:1", count=2, index=0))
    estimator = ec.Estimator(model_fn, str(tmp_path), config)
    for explain in (permutation_importance, integrated_gradients):
        with pytest.raises(ArgumentError, match=r"in one process; .*JAX_NUM_PROCESSES=1 or RunConfig\(processes=None"):
            explain(estimator, input_fn())


def test_one_repetition_has_no_interval():
    assert Importance(features=("x",), metric="loss", baseline=1.0, losses=(0.5,)).interval is None


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_losses_that_are_not_finite_have_no_interval(value):
    assert Importance(features=("x",), metric="loss", baseline=1.0, losses=(0.5, value)).interval is None
