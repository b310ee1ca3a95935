"""Heads that break their contract, each in one way; `fails` names the tests of the suite that catch it."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from estimator_core.metrics import mean
from estimator_testing import HeadSuite
from plugins.testing.tests.sound_head import SoundHead


class Suite(HeadSuite):
    Broken: type[SoundHead]
    head_name = None
    fails = ()

    def make(self):
        return self.Broken(self.head_name)

    def labels(self, rng, batch):
        return rng.integers(0, 3, size=batch)


class TestLogitsDimensionOfNone(Suite):
    fails = ("test_is_a_head",)

    class Broken(SoundHead):
        logits_dimension = 0

    def logits(self, rng, batch):
        return rng.normal(size=(batch, 3)).astype(np.float32)


class TestWithoutPredictions(Suite):
    fails = ("test_is_a_head",)

    class Broken(SoundHead):
        def __getattribute__(self, name):
            if name == "predictions":
                raise AttributeError(name)
            return super().__getattribute__(name)


class TestLossPerExample(Suite):
    fails = ("test_loss_is_a_finite_scalar",)

    class Broken(SoundHead):
        def loss(self, labels, logits, *_):
            return self.unreduced_loss(labels, logits)


class TestLossIsNotFinite(Suite):
    fails = ("test_loss_is_a_finite_scalar",)

    class Broken(SoundHead):
        def loss(self, *arguments):
            return super().loss(*arguments) / 0


class TestLossCountsCalls(Suite):
    fails = ("test_loss_is_pure",)

    class Broken(SoundHead):
        calls = itertools.count()

        def loss(self, *arguments):
            return super().loss(*arguments) + next(self.calls)


class TestWrongGradient(Suite):
    fails = ("test_gradient_is_that_of_the_loss",)

    class Broken(SoundHead):
        def loss(self, labels, logits, *rest):
            half = jnp.asarray(logits) / 2
            return super().loss(labels, half + jax.lax.stop_gradient(half), *rest)


class TestNoGradient(Suite):
    fails = ("test_gradient_is_that_of_the_loss",)

    class Broken(SoundHead):
        def loss(self, labels, logits, *rest):
            return super().loss(labels, jax.lax.stop_gradient(jnp.asarray(logits)), *rest)


class TestRegularizationIsDropped(Suite):
    fails = ("test_regularization_is_added",)

    class Broken(SoundHead):
        def loss(self, labels, logits, features=None, mode=None, regularization_losses=None):
            return super().loss(labels, logits, features, mode)


class TestTakesAnyLogits(Suite):
    fails = ("test_logits_of_another_size_are_refused",)

    class Broken(SoundHead):
        def unreduced_loss(self, labels, logits):
            return super().unreduced_loss(labels, logits[:, :3])


class TestTakesAnyLabels(Suite):
    fails = ("test_labels_of_another_batch_are_refused",)

    class Broken(SoundHead):
        def unreduced_loss(self, labels, logits):
            return super().unreduced_loss(labels[: len(logits)], logits)


class TestPredictionsSeeTheBatch(Suite):
    fails = ("test_predictions_by_row",)

    class Broken(SoundHead):
        def predictions(self, logits, keys=None):
            return super().predictions(logits - jnp.arange(len(logits))[:, None] * jnp.arange(3), keys)


class TestKeysAreIgnored(Suite):
    fails = ("test_predictions_by_key",)

    class Broken(SoundHead):
        def predictions(self, logits, keys=None):
            return super().predictions(logits)


class TestMetricsOfTheLastBatch(Suite):
    fails = ("test_metrics_merge",)

    class Broken(SoundHead):
        def metrics(self, features, logits, labels, *rest):
            return {"average_loss": mean(self.unreduced_loss(labels, logits).mean())}


class TestMetricIsANumber(Suite):
    fails = ("test_metrics_are_finite",)

    class Broken(SoundHead):
        def metrics(self, *arguments):
            return {**super().metrics(*arguments), "best": 1.0}


class TestMetricIsNotFinite(Suite):
    fails = ("test_metrics_are_finite",)

    class Broken(SoundHead):
        def metrics(self, features, logits, labels, *rest):
            return {"log_of_loss": mean(jnp.log(-self.unreduced_loss(labels, logits)))}


class TestMetricsDependOnTheBatch(Suite):
    fails = ("test_metrics_keep_their_structure",)

    class Broken(SoundHead):
        def metrics(self, features, logits, labels, *rest):
            return {f"loss_of_{len(labels)}": mean(self.unreduced_loss(labels, logits))}


class TestPaddingCounts(Suite):
    fails = ("test_metrics_leave_padding_out",)

    class Broken(SoundHead):
        def metrics(self, features, logits, labels, *rest):
            return {"average_loss": mean(self.unreduced_loss(labels, logits).reshape(-1, 1, 1).mean(axis=0))}


class TestMetricsWithoutTheName(Suite):
    fails = ("test_metric_names_bear_the_name",)
    head_name = "topic"

    class Broken(SoundHead):
        def key(self, key):
            return key


class TestTrainsOnAnotherLoss(Suite):
    fails = ("test_spec_for_training",)

    class Broken(SoundHead):
        def create_estimator_spec(self, features, mode, logits, **arguments):
            spec = super().create_estimator_spec(features, mode, logits, **arguments)
            return spec._replace(loss=spec.loss * 2) if mode == "train" else spec


class TestEvaluatesWithoutMetrics(Suite):
    fails = ("test_spec_for_evaluation",)

    class Broken(SoundHead):
        def create_estimator_spec(self, features, mode, logits, **arguments):
            spec = super().create_estimator_spec(features, mode, logits, **arguments)
            return spec._replace(eval_metric_ops=None)


class TestCannotBeServed(Suite):
    fails = ("test_spec_for_prediction",)

    class Broken(SoundHead):
        def create_estimator_spec(self, features, mode, logits, **arguments):
            spec = super().create_estimator_spec(features, mode, logits, **arguments)
            return spec._replace(export_outputs=None)


class TestLossIgnoresWeights(Suite):
    fails = ("test_weights_count",)

    class Broken(SoundHead):
        def weights(self, features, losses):
            return super().weights({}, losses)

    def with_weights(self, features, weights):
        return {**features, "w": weights}


class TestLossIgnoresTheMask(Suite):
    fails = ("test_loss_leaves_padding_out",)

    class Broken(SoundHead):
        def loss(self, labels, logits, features=None, mode=None, regularization_losses=None):
            return self.unreduced_loss(labels, logits).mean() + sum(regularization_losses or [])


class TestLossDividesByAllRows(Suite):
    fails = ("test_loss_leaves_padding_out",)

    class Broken(SoundHead):
        def loss(self, labels, logits, features=None, mode=None, regularization_losses=None):
            losses = self.unreduced_loss(labels, logits)
            return (losses * self.weights(features, losses)).mean() + sum(regularization_losses or [])


class TestInvertedPredictions(Suite):
    fails = ("test_predictions_are_what_it_learns",)

    class Broken(SoundHead):
        def predictions(self, logits, keys=None):
            return {**super().predictions(logits, keys), "class_ids": jnp.argmin(logits, axis=-1)}


class TestLogOfASoftmax(Suite):
    fails = ("test_loss_is_stable",)

    class Broken(SoundHead):
        def unreduced_loss(self, labels, logits):
            super().unreduced_loss(labels, logits)
            return -jnp.log(jnp.take_along_axis(jax.nn.softmax(logits), jnp.asarray(labels)[:, None], axis=1)[:, 0])


class TestLossHidesNan(Suite):
    fails = ("test_nan_is_not_hidden",)

    class Broken(SoundHead):
        def loss(self, *arguments):
            return jnp.nan_to_num(super().loss(*arguments))


class TestSpecDropsRegularization(Suite):
    fails = ("test_spec_keeps_what_it_is_given",)

    class Broken(SoundHead):
        def create_estimator_spec(self, features, mode, logits, regularization_losses=None, **arguments):
            return super().create_estimator_spec(features, mode, logits, **arguments)


class TestSpecDropsTheTrainOpFn(Suite):
    fails = ("test_spec_keeps_what_it_is_given",)

    class Broken(SoundHead):
        def create_estimator_spec(self, features, mode, logits, train_op_fn=None, **arguments):
            return super().create_estimator_spec(features, mode, logits, optimizer=optax.sgd(0.1), **arguments)


class TestDrawsFromTheGlobalGenerator(Suite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(SoundHead):
        def metrics(self, *arguments, **given):
            np.random.random()
            return super().metrics(*arguments, **given)


class TestLossOfAHash(Suite):
    fails = ("test_another_hash_seed",)

    class Broken(SoundHead):
        def unreduced_loss(self, labels, logits):
            return super().unreduced_loss(labels, logits) * (1 + hash("loss") % 1000)
