"""The head keeps its contract, and decides what a model learns."""

import numpy as np
import optax

import estimator_core as ec
from estimator_core.testing.head_suite import HeadSuite


class TestAcmeHeadHead(HeadSuite):
    def make(self):
        return ec.Plugins().get("head", "acme_head")(name="price")

    def labels(self, rng, batch):
        return rng.normal(size=(batch, 1)).astype(np.float32)


def train(model_dir, **arguments):
    head = ec.Plugins().get("head", "acme_head")(**arguments)

    def model_fn(features, labels, mode):
        logits = features["x"] @ ec.get_variable("kernel", (1, 1))
        return head.create_estimator_spec(features, mode, logits, labels=labels, optimizer=optax.sgd(0.1))

    x = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]
    labels = np.where(np.arange(32) == 31, 100, 2 * x[:, 0]).astype(np.float32)  # one label is far off
    input_fn = ec.inputs.numpy_input_fn({"x": x}, labels, batch_size=32, num_epochs=None, shuffle=False)
    config = ec.RunConfig(model_dir=str(model_dir), tf_random_seed=1)
    return ec.Estimator(model_fn, config=config).train(input_fn, steps=60)


def test_takes_part_in_a_run(tmp_path):
    robust, sensitive = train(tmp_path / "robust"), train(tmp_path / "sensitive", delta=1e6)
    assert abs(robust.get_variable_value("kernel").item() - 2) < 1
    assert abs(sensitive.get_variable_value("kernel").item() - 2) > 3
