"""The component `warm_start` keeps the contract of initial values."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_core.testing import InitialValuesSuite


class TestWarmStart(InitialValuesSuite):
    def make(self, folder: Path) -> ec.WarmStartSettings:
        def model_fn(features, labels, mode):
            kernel = ec.get_variable("kernel", (2, 3), np.full((2, 3), 4.0, np.float32))
            seen = ec.get_variable("seen", (), np.asarray(5), dtype="int32", trainable=False)
            return ec.EstimatorSpec(mode, loss=jnp.sum(kernel) * features.mean() + 0 * seen, train_op=optax.sgd(0.0))

        earlier = ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(folder / "earlier"), default_hooks=False))
        earlier.train(lambda: [(np.zeros(2, np.float32), None)], max_steps=1)
        return ec.Plugins().get("initial_values", "warm_start")(earlier.model_dir)

    def variables(self) -> dict[str, np.ndarray]:
        return {
            "kernel": np.zeros((2, 3), np.float32),
            "seen": np.asarray(0, np.int32),
            "bias": np.ones(3, np.float32),
        }
