"""The module-adapter suite passes a sound adapter and those of the core, and catches broken ones."""

import numpy as np
import pytest

from estimator_testing import ModuleAdapterSuite
from plugins.testing.tests.affine_library import Affine
from plugins.testing.tests.sound_adapter import AffineAdapter


class TestAffineAdapter(ModuleAdapterSuite):
    def make(self):
        return AffineAdapter()

    def module(self):
        return Affine(3)

    def inputs(self, rng):
        return rng.normal(size=(4, 2)).astype(np.float32)


@pytest.mark.libraries
class TestNnxAdapter(ModuleAdapterSuite):
    def make(self):
        from estimator_core._model.adapters.nnx import NnxAdapter

        return NnxAdapter()

    def module(self):
        from flax import nnx

        return nnx.Linear(2, 3, rngs=nnx.Rngs(0))

    def inputs(self, rng):
        return rng.normal(size=(4, 2)).astype(np.float32)


@pytest.mark.libraries
class TestEquinoxAdapter(ModuleAdapterSuite):
    def make(self):
        from estimator_core._model.adapters.equinox import EquinoxAdapter

        return EquinoxAdapter()

    def module(self):
        import equinox as eqx
        import jax

        return eqx.nn.Linear(2, 3, key=jax.random.key(0))

    def inputs(self, rng):
        return rng.normal(size=(4, 2)).astype(np.float32)

    def call(self, module, inputs):
        import jax

        return jax.vmap(module)(inputs)


def test_broken_adapters_are_caught(assert_each_is_caught):
    assert_each_is_caught("adapters")
