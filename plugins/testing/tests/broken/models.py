"""Models that break their contract, each in one way; `fails` names the tests of the suite that catch it."""

import itertools
import random
import threading

import jax.numpy as jnp
import optax

import estimator_core as ec
from estimator_testing import ModelSuite
from plugins.testing.tests.sound_model import SoundModel, examples, logistic_model_fn


class Suite(ModelSuite):
    fails = ()

    def make(self, config):
        return SoundModel(config, self.model_fn)

    @staticmethod
    def model_fn(features, labels, mode):
        return logistic_model_fn(features, labels, mode)

    def examples(self, rng):
        return examples(rng)


class TestIgnoresItsConfig(Suite):
    fails = ("test_is_an_estimator",)

    def make(self, config):
        return SoundModel(ec.RunConfig(model_dir=config.model_dir))


class TestIsNoEstimator(Suite):
    fails = ("test_is_an_estimator",)

    def make(self, config):
        return self


class TestDoesNotLearn(Suite):
    fails = ("test_learns",)

    @staticmethod
    def model_fn(features, labels, mode):
        spec = logistic_model_fn(features, labels, mode)
        return spec if mode == "infer" else spec._replace(train_op=optax.sgd(1e-6))


class TestMetricIsNotFinite(Suite):
    fails = ("test_metrics_are_finite",)

    @staticmethod
    def model_fn(features, labels, mode):
        spec = logistic_model_fn(features, labels, mode)
        if mode != "eval":
            return spec
        return spec._replace(eval_metric_ops={"log": ec.metrics.mean(jnp.log(-(features["x"][:, 0] ** 2)))})


class TestMetricOfBatches(Suite):
    fails = ("test_metrics_count_every_example_once",)

    @staticmethod
    def model_fn(features, labels, mode):
        spec = logistic_model_fn(features, labels, mode)
        if mode != "eval":
            return spec
        return spec._replace(eval_metric_ops={"highest": ec.metrics.mean(features["x"].max())})


class TestPredictionsSeeTheBatch(Suite):
    fails = ("test_predicts_each_example",)

    @staticmethod
    def model_fn(features, labels, mode):
        spec = logistic_model_fn(features, labels, mode)
        if mode != "infer":
            return spec
        return spec._replace(predictions={"rank": jnp.argsort(spec.predictions["probability"])})


class TestNeedsLabelsToPredict(Suite):
    fails = ("test_predicts_each_example",)

    @staticmethod
    def model_fn(features, labels, mode):
        return logistic_model_fn({"x": features["x"] + 0 * labels[:, None]}, labels, mode)


class TestRandomOfItsOwn(Suite):
    fails = ("test_repeats_itself", "test_resumes")

    def make(self, config):
        shift = random.random()

        def model_fn(features, labels, mode):
            return logistic_model_fn({"x": features["x"] + shift}, labels, mode)

        return SoundModel(config, model_fn)


class TestOneSeedForAll(Suite):
    fails = ("test_is_an_estimator",)

    def make(self, config):
        return SoundModel(config.replace(tf_random_seed=1))


class TestStartsAgain(Suite):
    fails = ("test_resumes", "test_a_checkpoint_is_the_model")
    numbers = itertools.count()

    def make(self, config):
        return SoundModel(config.replace(model_dir=f"{config.model_dir}/{next(self.numbers)}"))


class TestCountsPredictions(Suite):
    fails = ("test_evaluation_and_prediction_change_nothing",)

    def make(self, config):
        model = SoundModel(config)
        inside = model.predict

        def predict(*arguments):
            model.train(lambda: iter([({"x": jnp.ones((1, 3))}, jnp.ones(1, jnp.int32))]), steps=1)
            return inside(*arguments)

        model.predict = predict
        return model


class TestMakesItsModelAnew(Suite):
    fails = ("test_is_traced_once_a_mode",)

    def make(self, config):
        model = SoundModel(config)
        inside = model.train

        def train(*arguments, **named):
            inside(*arguments, **named)
            list(SoundModel(config).predict(lambda: [{"x": jnp.ones((1, 3))}]))
            model._programs.traces["train"] += 1

        model.train = train
        return model


class TestMeansOfBatches(Suite):
    fails = ("test_metrics_count_every_example_once",)

    @staticmethod
    def model_fn(features, labels, mode):
        spec = logistic_model_fn(features, labels, mode)
        if mode != "eval":
            return spec
        return spec._replace(eval_metric_ops={"mean": ec.metrics.mean(features["x"].mean())})


class TestLooksAtNothing(Suite):
    fails = ("test_predicts_each_example",)

    @staticmethod
    def model_fn(features, labels, mode):
        return logistic_model_fn({"x": 0 * features["x"]}, labels, mode)


class TestLeavesAThread(Suite):
    fails = ("test_leaves_nothing_behind",)

    def make(self, config):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        return super().make(config)


class TestWeightsOfAHash(Suite):
    fails = ("test_another_hash_seed",)

    @staticmethod
    def model_fn(features, labels, mode):
        ec.get_variable("offset", (), lambda *_: jnp.float32(hash("offset") % 1000), trainable=False)
        return logistic_model_fn(features, labels, mode)


class TestCountsPadding(Suite):
    fails = ("test_padding_does_not_count",)

    @staticmethod
    def model_fn(features, labels, mode):
        spec = logistic_model_fn(features, labels, mode)
        return spec if mode == "infer" else spec._replace(loss=jnp.mean((features["x"].sum(-1) - labels) ** 2))
