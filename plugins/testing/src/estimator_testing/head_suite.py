"""The suite for heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from estimator_core.heads import Head
from estimator_core.metrics import (
    Metric,
    applying_example_weights,
    check_same_structure,
    compute_metrics,
    merge_metrics,
)
from estimator_core.modes import ModeKeys
from estimator_testing.leaks import leaving_nothing, loading
from estimator_testing.other_seed import same_under_another_seed
from estimator_testing.suite import Suite

if TYPE_CHECKING:
    from jax import Array

BATCH = 6
_LEARNING_STEPS = 25
#: The names of predictions that are close to the labels after the head has learned them.
_ALIKE = ("class_ids", "logistic", "predictions", "probabilities")


class HeadSuite(Suite):
    """Proves that a head computes what it declares. Subclass it, and implement `make` and `labels`.

    Example:
        >>> class TestMyHead(HeadSuite):
        ...     def make(self):
        ...         return MyHead(n_classes=3)
        ...
        ...     def labels(self, rng, batch):
        ...         return rng.integers(0, 3, size=(batch, 1))
    """

    #: The largest logit for which the loss is finite. Lower for heads with an exponential by design, such as Poisson.
    largest_logit: ClassVar[float] = 200.0

    def make(self) -> Head:
        """Returns the head. It is called for every test."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def labels(self, rng: np.random.Generator, batch: int) -> Any:
        """Returns labels of `batch` examples: an array, or a tree of arrays, with a leading axis of examples."""
        raise NotImplementedError(f"{type(self).__name__} must define labels(self, rng, batch)")

    def features(self, rng: np.random.Generator, batch: int) -> Mapping[str, Any]:
        """Returns features of `batch` examples. Override it if the head reads features, such as weights."""
        return {"x": rng.normal(size=(batch, 2)).astype(np.float32)}

    def logits(self, rng: np.random.Generator, batch: int) -> Any:
        """Returns logits of `batch` examples: float32 [batch, logits_dimension]. Override it for heads with several."""
        return rng.normal(size=(batch, self.make().logits_dimension)).astype(np.float32)

    def with_weights(self, features: Mapping[str, Any], weights: np.ndarray[Any, Any]) -> Mapping[str, Any] | None:
        """Returns the features with weights, float32 [batch]. Override it if the head reads weights from features."""
        return None

    def distances(self, predictions: Mapping[Any, Any], labels: Any) -> Mapping[str, float]:
        """Returns the distances of predictions from labels, by key. Override it for predictions with other names or
        forms.
        """
        found: dict[str, float] = {}
        for key in set(_ALIKE) & set(predictions):
            value, wanted = np.asarray(predictions[key]), labels if hasattr(labels, "shape") else np.zeros(0)
            if key == "probabilities" and value.size != wanted.size:
                value = np.argmax(value, axis=-1)
            if value.size == wanted.size and value.dtype.kind in "iuf":
                found[key] = float(np.mean(np.abs(value.ravel() - wanted.ravel())))
        return found

    def optimizer(self) -> optax.GradientTransformation:
        """Returns the optimizer that trains the head."""
        return optax.sgd(0.1)

    def test_is_a_head(self) -> None:
        """It has the methods of a Head, a name or None, and a positive number of logits."""
        head = self.make()
        assert isinstance(head, Head), f"{head!r} lacks a method of Head"
        assert head.name is None or isinstance(head.name, str)
        assert isinstance(head.logits_dimension, int)
        assert head.logits_dimension > 0

    def test_loss_is_a_finite_scalar(self) -> None:
        """The loss is one finite float32."""
        loss = self._loss(self._batch())
        assert loss.shape == (), f"the loss has shape {loss.shape}"
        assert loss.dtype == jnp.float32, f"the loss has dtype {loss.dtype}"
        assert np.isfinite(loss), f"the loss is {loss}"

    def test_loss_is_pure(self) -> None:
        """The same batch has the same loss, also with another head from `make`, and under jit."""
        batch = self._batch()
        first = self._loss(batch)
        np.testing.assert_array_equal(self._loss(batch), first, "a second head from `make` returns another loss")
        head = self.make()
        features, labels, logits = batch
        eager = [head.loss(labels, logits, features, ModeKeys.TRAIN) for _ in range(2)]
        np.testing.assert_array_equal(eager[0], eager[1], "a second call returns another loss")
        traced = jax.jit(lambda *arrays: head.loss(arrays[0], arrays[1], arrays[2], ModeKeys.TRAIN))
        np.testing.assert_allclose(traced(labels, logits, features), first, rtol=1e-5, err_msg="under jit")

    def test_gradient_is_that_of_the_loss(self) -> None:
        """The gradient with respect to the logits is the slope of the loss, measured by central differences."""
        features, labels, logits = self._batch()
        head = self.make()
        gradient = jax.grad(lambda given: head.loss(labels, given, features, ModeKeys.TRAIN))(logits)
        for seed in range(4):
            rng = np.random.default_rng(seed)
            direction = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape).astype(np.float32), logits)  # noqa: B023
            dots = jax.tree.map(lambda one, other: jnp.sum(one * other), gradient, direction)
            slope = _slope(head, labels, logits, direction, features)
            np.testing.assert_allclose(sum(jax.tree.leaves(dots)), slope, rtol=2e-3, atol=2e-4)

    def test_loss_leaves_padding_out(self) -> None:
        """Padding rows do not count in the loss, nor in its gradient: `ec.example_weights()` is 0 for them."""
        features, labels, logits = self._batch()
        rows = BATCH - 2
        with applying_example_weights(jnp.asarray([1.0] * rows + [0.0] * 2, jnp.float32)):
            padded, gradient = self._loss_and_gradient(features, labels, logits)
        expected = self._loss(self._batch(slice(0, rows)))
        np.testing.assert_allclose(padded, expected, rtol=1e-5, atol=1e-6, err_msg="padding rows change the loss")
        for leaf in jax.tree.leaves(gradient):
            assert not np.any(np.asarray(leaf)[rows:]), "padding rows have a gradient"

    def test_weights_count(self) -> None:
        """The gradient of an example is proportional to its weight, and 0 for weight 0."""
        features, labels, logits = self._batch()
        weights = np.array([0.0, 1.0, 2.0, 0.5, 1.0, 3.0], np.float32)
        even, uneven = (self.with_weights(features, one) for one in (np.ones(BATCH, np.float32), weights))
        if even is None or uneven is None:
            pytest.skip("the head reads no weights: with_weights is not defined")
        _, one = self._loss_and_gradient(even, labels, logits)
        _, other = self._loss_and_gradient(uneven, labels, logits)
        for alike, weighted in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            wanted = np.asarray(alike) * weights.reshape((-1, *[1] * (np.ndim(alike) - 1)))
            scale = np.vdot(wanted, weighted) / np.vdot(wanted, wanted)
            assert scale > 0, "the loss falls where weights rise"
            np.testing.assert_allclose(weighted, scale * wanted, rtol=1e-3, atol=1e-5, err_msg="by example")

    def test_predictions_are_what_it_learns(self) -> None:
        """Logits that followed the gradient of the loss predict their own labels, not those of other examples."""
        features, labels, learned = self._batch()
        gradient = jax.jit(jax.grad(lambda given: self.make().loss(labels, given, features, ModeKeys.TRAIN)))
        for _ in range(_LEARNING_STEPS):
            learned = jax.tree.map(lambda leaf, slope: leaf - 0.25 * np.sign(slope), learned, gradient(learned))
        predictions, others = self.make().predictions(learned), jax.tree.map(lambda leaf: np.roll(leaf, 1, 0), labels)
        near, far = (self.distances(predictions, one) for one in (labels, others))
        if not near:
            pytest.skip("distances finds no prediction that has the form of the labels")
        wrong = [key for key in near if near[key] >= far[key]]
        assert not wrong, f"{', '.join(wrong)}: {near} from the labels that it learned, {far} from those of others"

    def test_loss_is_stable(self) -> None:
        """Loss and gradient are finite for large logits, right and wrong ones."""
        features, labels, logits = self._batch()
        for sign in (1, -1):
            large = jax.tree.map(lambda leaf, sign=sign: sign * np.sign(leaf) * self.largest_logit, logits)
            loss, gradient = self._loss_and_gradient(features, labels, large)
            assert np.isfinite(loss), f"with logits of {self.largest_logit} the loss is {loss}"
            finite = all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))
            assert finite, f"with logits of {self.largest_logit} the gradient is not finite"

    def test_nan_is_not_hidden(self) -> None:
        """The loss for NaN logits is not finite, so that a diverging training is visible."""
        features, labels, logits = self._batch()
        loss = self._loss((features, labels, jax.tree.map(lambda leaf: np.full_like(leaf, np.nan), logits)))
        assert not np.isfinite(loss), f"the loss of logits of NaN is {loss}"

    def test_regularization_is_added(self) -> None:
        """Regularization losses are added to the loss unchanged."""
        features, labels, logits = self._batch()
        extra = [jnp.float32(1.0), jnp.float32(0.5)]
        with_extra = self.make().loss(labels, logits, features, ModeKeys.TRAIN, extra)
        np.testing.assert_allclose(with_extra, self._loss((features, labels, logits)) + 1.5, rtol=1e-5)

    def test_logits_of_another_size_are_refused(self) -> None:
        """Logits whose last axis is not `logits_dimension` are refused with a ValueError."""
        features, labels, logits = self._batch()
        wider = jax.tree.map(lambda leaf: np.concatenate([leaf, leaf, leaf], axis=-1), logits)
        with pytest.raises(ValueError, match=r"\d"):
            self.make().loss(labels, wider, features, ModeKeys.TRAIN)

    def test_labels_of_another_batch_are_refused(self) -> None:
        """Labels of more examples than there are logits are refused with a ValueError."""
        features, _, logits = self._batch()
        more = self.labels(np.random.default_rng(1), BATCH + 1)
        with pytest.raises(ValueError, match=r"\d"):
            self.make().loss(more, logits, features, ModeKeys.TRAIN)

    def test_predictions_by_row(self) -> None:
        """Every prediction has the examples on its first axis, and a row depends only on its own logits."""
        _, _, logits = self._batch()
        predictions = self.make().predictions(logits)
        assert predictions, "there are no predictions"
        order = np.random.default_rng(3).permutation(BATCH)
        shuffled = self.make().predictions(jax.tree.map(lambda leaf: leaf[order], logits))
        part = self.make().predictions(jax.tree.map(lambda leaf: leaf[:2], logits))
        for key, value in predictions.items():
            assert value.shape[:1] == (BATCH,), f"{key!r} has shape {value.shape}; the first axis must be the example"
            np.testing.assert_allclose(np.asarray(shuffled[key]), np.asarray(value)[order], rtol=1e-5, err_msg=str(key))
            np.testing.assert_allclose(np.asarray(part[key]), np.asarray(value)[:2], rtol=1e-5, err_msg=str(key))

    def test_predictions_by_key(self) -> None:
        """`keys` selects predictions, and selecting changes none."""
        _, _, logits = self._batch()
        head = self.make()
        everything = head.predictions(logits)
        for key, value in everything.items():
            one = head.predictions(logits, keys=[key])
            assert list(one) == [key], f"keys=[{key!r}] gives {list(one)}"
            np.testing.assert_array_equal(one[key], value)

    def test_metrics_merge(self) -> None:
        """The merged metrics of two batches equal those of all examples at once, in either order."""
        whole, first, second = self._batch(), self._batch(slice(0, 2)), self._batch(slice(2, None))
        expected = compute_metrics(self._metrics(whole))
        for one, other in ((first, second), (second, first)):
            merged = compute_metrics(merge_metrics(self._metrics(one), self._metrics(other)))
            assert set(merged) == set(expected)
            for key, value in expected.items():
                if key not in self.metrics_over_batches():
                    np.testing.assert_allclose(merged[key], value, rtol=1e-5, atol=1e-6, err_msg=key)

    def metrics_over_batches(self) -> frozenset[str]:
        """Returns the names of metrics that average over batches rather than over examples."""
        return frozenset()

    def test_metrics_are_finite(self) -> None:
        """Every metric is streaming, and its value is finite."""
        metrics = self._metrics(self._batch())
        for key, metric in metrics.items():
            assert isinstance(metric, Metric), f"{key!r} is {metric!r}, which does not merge and compute"
            assert np.all(np.isfinite(metric.compute())), f"{key!r} is {metric.compute()}"

    def test_metrics_keep_their_structure(self) -> None:
        """Names, shapes and dtypes of the metrics do not depend on the batch, and they can be computed under jit."""
        head, batch = self.make(), self._batch()
        eager = self._metrics(batch)
        check_same_structure(eager, self._metrics(self._batch(slice(0, 2))))
        features, labels, logits = batch
        program = jax.jit(lambda *arrays: head.metrics(arrays[0], arrays[1], arrays[2], ModeKeys.EVAL))
        traced = program(features, logits, labels)
        for key, value in compute_metrics(traced).items():
            np.testing.assert_allclose(value, eager[key].compute(), rtol=1e-5, atol=1e-6, err_msg=key)

    def test_metrics_leave_padding_out(self) -> None:
        """Padding rows do not count: the metrics equal those of the batch without them."""
        rows = BATCH - 2
        mask = jnp.asarray([1.0] * rows + [0.0] * 2, jnp.float32)
        with applying_example_weights(mask):
            padded = compute_metrics(self._metrics(self._batch()))
        for key, value in compute_metrics(self._metrics(self._batch(slice(0, rows)))).items():
            np.testing.assert_allclose(padded[key], value, rtol=1e-5, atol=1e-6, err_msg=key)

    def test_metric_names_bear_the_name(self) -> None:
        """The metric names of a named head end with its name, so that two heads can share a model."""
        head = self.make()
        if head.name is not None:
            without = [key for key in self._metrics(self._batch()) if not key.endswith(f"/{head.name}")]
            assert not without, f"metrics {without} do not end with /{head.name}"

    def test_spec_for_training(self) -> None:
        """In TRAIN the spec has the loss of `loss` and the optimizer given."""
        features, labels, logits = self._batch()
        spec = self.make().create_estimator_spec(
            features, ModeKeys.TRAIN, logits, labels=labels, optimizer=self.optimizer()
        )
        np.testing.assert_allclose(spec.loss, self._loss((features, labels, logits)), rtol=1e-6)
        assert spec.mode == ModeKeys.TRAIN
        assert spec.train_op is not None

    def test_spec_for_evaluation(self) -> None:
        """In EVAL the spec has the loss of `loss` and the metrics of `metrics`."""
        features, labels, logits = batch = self._batch()
        spec = self.make().create_estimator_spec(features, ModeKeys.EVAL, logits, labels=labels)
        np.testing.assert_allclose(spec.loss, self.make().loss(labels, logits, features, ModeKeys.EVAL), rtol=1e-6)
        expected, actual = compute_metrics(self._metrics(batch)), compute_metrics(spec.eval_metric_ops or {})
        assert set(actual) == set(expected)
        for key, value in expected.items():
            np.testing.assert_allclose(actual[key], value, rtol=1e-6, err_msg=key)

    def test_spec_keeps_what_it_is_given(self) -> None:
        """The spec has the regularization losses in its loss, and the train_op that `train_op_fn` makes of that."""
        features, labels, logits = self._batch()
        extra, asked = [jnp.float32(1.0), jnp.float32(0.5)], []

        def train_op_fn(loss: Any) -> Any:
            asked.append(loss)
            return self.optimizer()

        for mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            spec = self.make().create_estimator_spec(
                features, mode, logits, labels=labels, train_op_fn=train_op_fn, regularization_losses=extra
            )
            expected = self.make().loss(labels, logits, features, mode, extra)
            np.testing.assert_allclose(spec.loss, expected, rtol=1e-5, err_msg=f"regularization in {mode!r}")
        assert len(asked) == 1, f"train_op_fn is called {len(asked)} times, not once in TRAIN"
        np.testing.assert_allclose(
            asked[0], self.make().loss(labels, logits, features, ModeKeys.TRAIN, extra), rtol=1e-5
        )

    def test_another_hash_seed(self, request: pytest.FixtureRequest) -> None:
        """With another seed of string hashes, as in the next process, its loss and its predictions are the same."""
        features, labels, logits = self._batch()

        def both(logits: Any) -> tuple[Any, dict[str, Any]]:
            predictions = self.make().predictions(logits)
            return self._loss((features, labels, logits)), {str(key): value for key, value in predictions.items()}

        loss, predictions = jax.jit(both)(logits)  # one program compiles faster than the single operations
        same_under_another_seed(request, [np.asarray(loss), [(key, predictions[key]) for key in sorted(predictions)]])

    def test_leaves_nothing_behind(self) -> None:
        """Loss, metrics, predictions and specs change nothing in the process, such as the random generators."""
        features, labels, logits = self._batch()

        def use(head: Head) -> None:
            head.metrics(features, logits, labels, ModeKeys.EVAL)
            for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
                given = None if mode == ModeKeys.PREDICT else labels
                head.create_estimator_spec(features, mode, logits, labels=given, optimizer=self.optimizer())

        kept = [self.make()]
        with loading():
            use(kept[0])
        with leaving_nothing("after specs of each mode, the head"):
            kept.append(self.make())
            use(kept[1])

    def test_spec_for_prediction(self) -> None:
        """In PREDICT the spec needs no labels, and has the predictions and at least one export output."""
        features, _, logits = self._batch()
        spec = self.make().create_estimator_spec(features, ModeKeys.PREDICT, logits)
        expected: Mapping[Any, Array] = self.make().predictions(logits)
        assert spec.predictions is not None
        assert set(spec.predictions) == set(expected)
        for key, value in expected.items():
            np.testing.assert_array_equal(spec.predictions[key], value)
        assert spec.export_outputs, "export_outputs is empty: such a model cannot be served"

    def _batch(self, rows: slice = slice(None)) -> tuple[Any, Any, Any]:
        """Returns features, labels and logits of six examples, always the same, or of some of them."""
        rng = np.random.default_rng(7)
        batch = self.features(rng, BATCH), self.labels(rng, BATCH), self.logits(rng, BATCH)
        return jax.tree.map(lambda leaf: np.asarray(leaf)[rows], batch)

    def _loss_and_gradient(self, features: Any, labels: Any, logits: Any) -> tuple[Any, Any]:
        head = self.make()
        return jax.value_and_grad(lambda given: head.loss(labels, given, features, ModeKeys.TRAIN))(logits)

    def _loss(self, batch: tuple[Any, Any, Any]) -> Any:
        features, labels, logits = batch
        return self.make().loss(labels, logits, features, ModeKeys.TRAIN)

    def _metrics(self, batch: tuple[Any, Any, Any]) -> dict[str, Metric]:
        features, labels, logits = batch
        return self.make().metrics(features, logits, labels, ModeKeys.EVAL)


def _slope(head: Head, labels: Any, logits: Any, direction: Any, features: Mapping[str, Any]) -> float:
    """Returns the slope of the loss along a direction, by central differences wide enough for float32."""
    width = 2.0**-6
    ahead, behind = (
        jax.tree.map(lambda leaf, way, sign=sign: leaf + sign * width * way, logits, direction) for sign in (1, -1)
    )
    values = [float(head.loss(labels, one, features, ModeKeys.TRAIN)) for one in (ahead, behind)]
    return (values[0] - values[1]) / (2 * width)
