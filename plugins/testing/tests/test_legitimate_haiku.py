"""A module adapter with a state for dm-haiku passes the suite without replacing a test, and its module is trained."""

import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_testing import ModuleAdapterSuite, tiny_input_fn
from plugins.testing.tests.haiku_adapter import HaikuAdapter

pytestmark = pytest.mark.libraries


def network(width):
    hk = pytest.importorskip("haiku")

    def forward(x, is_training):
        hidden = hk.Linear(width)(x)
        return hk.BatchNorm(create_scale=True, create_offset=True, decay_rate=0.9, eps=0.1)(hidden, is_training)

    return hk.transform_with_state(forward)


class TestHaikuAdapter(ModuleAdapterSuite):
    def make(self):
        return HaikuAdapter()

    def module(self):
        return network(3)

    def inputs(self, rng):
        return rng.normal(size=(4, 2)).astype(np.float32)


class Offers:
    """The plugin of this adapter."""

    ESTIMATOR_PLUGIN_API = (1, 1)

    def estimator_components(self):
        target = "plugins.testing.tests.haiku_adapter:HaikuAdapter"
        return [ec.plugins.Component(kind="adapter", name="haiku", target=target, summary="Functions of Haiku.")]


def test_a_network_of_haiku_is_trained(tmp_path):
    layers = network(1)

    def model_fn(features, labels, mode):
        y = ec.module(layers, name="layers")(features["x"])[:, 0]
        return ec.EstimatorSpec(mode, loss=((y - labels) ** 2).mean(), train_op=optax.adam(0.1))

    config = ec.RunConfig(model_dir=str(tmp_path), tf_random_seed=1)
    estimator = ec.Estimator(model_fn, config=config, plugins=ec.Plugins(autoload=False, extra=[Offers()]))
    first = estimator.train(tiny_input_fn(), steps=2).evaluate(tiny_input_fn(), steps=2)["loss"]
    assert estimator.train(tiny_input_fn(), steps=100).evaluate(tiny_input_fn(), steps=2)["loss"] < 0.3 * first
    names = estimator.get_variable_names()
    assert {"layers/linear/w", "layers/batch_norm/scale", "layers/state/batch_norm/in/mean_ema/average"} <= set(names)
