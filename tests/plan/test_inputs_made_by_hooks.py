"""An input that a hook makes ready in `begin` can be planned for."""

import numpy as np

import estimator_core as ec
from estimator_core._cli.plan import first_batch
from tests.plan.lent_cpus import layers_model_fn


def test_hooks_begin_before_the_first_batch_is_drawn():
    arrays = {}

    class Load(ec.Hook):
        def begin(self, run):
            assert run.mode == ec.ModeKeys.TRAIN
            arrays["x"] = np.zeros((6, 2), np.float32)

    def input_fn():
        return ({"x": arrays["x"]} for _ in range(1))

    experiment = ec.Experiment(ec.Estimator(layers_model_fn), input_fn, input_fn, train_hooks=[Load(), ec.Hook()])
    assert first_batch(experiment).features["x"].shape == (6, 2)
