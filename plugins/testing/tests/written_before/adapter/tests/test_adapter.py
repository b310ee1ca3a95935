"""The adapter keeps its contract, and its modules are trained."""

import numpy as np
import optax
from acme_adapter.layers import Dense

import estimator_core as ec
from estimator_core.testing.module_adapter_suite import ModuleAdapterSuite
from estimator_core.testing.module_runner import ModuleRunner
from estimator_core.testing.tiny import tiny_input_fn


class TestAcmeAdapterAdapter(ModuleAdapterSuite):
    def make(self):
        return ec.Plugins().get("adapter", "acme_adapter")()

    def module(self):
        return Dense(2, 3)

    def inputs(self, rng):
        return rng.normal(size=(4, 2)).astype(np.float32)


def test_takes_part_in_a_run(tmp_path):
    layer = Dense(1, 1)
    before = layer.kernel.copy()

    def model_fn(features, labels, mode):
        y = ec.module(layer, name="layer")(features["x"])[:, 0]
        return ec.EstimatorSpec(mode, loss=((y - labels) ** 2).mean(), train_op=optax.sgd(0.5))

    config = ec.RunConfig(model_dir=str(tmp_path), tf_random_seed=1)
    estimator = ec.Estimator(model_fn, config=config).train(tiny_input_fn(), steps=100)
    np.testing.assert_array_equal(layer.kernel, before)
    assert abs(estimator.load_into(layer, "layer").kernel.item() - 3) < 0.2


def test_computes_by_itself():
    layer = Dense(2, 3)
    adapter = ec.Plugins().get("adapter", "acme_adapter")()
    x = np.ones((4, 2), np.float32)
    runner = ModuleRunner(adapter=adapter, thing=layer, call=lambda module, inputs: module(inputs)).start(x)
    output, _ = runner.apply(runner.variables, x)
    np.testing.assert_allclose(output, x @ layer.kernel, rtol=1e-6)
