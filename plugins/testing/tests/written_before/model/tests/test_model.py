"""The model keeps its contract, and learns what its arguments say."""

import numpy as np

import estimator_core as ec
from estimator_core.experiment import Experiment
from estimator_core.testing.model_suite import ModelSuite


def examples(rng):
    x = rng.normal(size=(40, 2)).astype(np.float32)
    return {"x": x}, np.abs(x).sum(axis=1)


class TestAcmeModelRegressor(ModelSuite):
    def make(self, config):
        return ec.Plugins().get("model", "acme_model")(config=config)

    def examples(self, rng):
        return examples(rng)


def loss(model_dir, **arguments):
    config = ec.RunConfig(model_dir=str(model_dir), tf_random_seed=1)
    model = ec.Plugins().get("model", "acme_model")(config=config, **arguments)
    features, labels = examples(np.random.default_rng(0))
    input_fn = ec.inputs.numpy_input_fn(features, labels, batch_size=40, num_epochs=None, shuffle=False)
    return model.train(input_fn, steps=60).evaluate(input_fn, steps=1)["loss"]


def test_takes_part_in_a_run(tmp_path):
    assert loss(tmp_path / "learns") < 0.2
    assert loss(tmp_path / "rests", learning_rate=0.0) > 0.5


def test_takes_part_in_an_experiment(tmp_path):
    features, labels = examples(np.random.default_rng(0))
    input_fn = ec.inputs.numpy_input_fn(features, labels, batch_size=40, num_epochs=None, shuffle=False)
    first = ec.Plugins().get("model", "acme_model")(config=ec.RunConfig(model_dir=str(tmp_path / "first")))
    ec.Experiment(first, input_fn, input_fn, train_steps=30, eval_steps=1).train()
    config = ec.RunConfig(model_dir=str(tmp_path / "second"))
    second = ec.Plugins().get("model", "acme_model")(config=config, warm_start_from=first.latest_checkpoint())
    result, _ = Experiment(second, input_fn, input_fn, train_steps=30, eval_steps=1).train_and_evaluate()
    assert result["loss"] < 0.4
