"""Every adapter fulfils the contract of adapters."""

import equinox as eqx
import jax
import keras
import numpy as np
from flax import linen, nnx

from estimator_core.testing import ModuleAdapterSuite
from estimator_modules.equinox_adapter import EquinoxAdapter
from estimator_modules.keras_adapter import KerasAdapter
from estimator_modules.linen_adapter import LinenAdapter
from estimator_modules.nnx_adapter import NnxAdapter


class Rows:
    """Inputs of two features."""

    def inputs(self, rng):
        return rng.normal(size=(4, 2)).astype(np.float32)


class TestNnxAdapter(Rows, ModuleAdapterSuite):
    def make(self):
        return NnxAdapter()

    def module(self):
        return nnx.Linear(2, 3, rngs=nnx.Rngs(0))


class TestLinenAdapter(Rows, ModuleAdapterSuite):
    def make(self):
        return LinenAdapter()

    def module(self):
        return linen.Dense(3)


class TestEquinoxAdapter(Rows, ModuleAdapterSuite):
    def make(self):
        return EquinoxAdapter()

    def module(self):
        return eqx.nn.Linear(2, 3, key=jax.random.key(0))

    def call(self, module, inputs):
        return jax.vmap(module)(inputs)


class TestKerasAdapter(Rows, ModuleAdapterSuite):
    def make(self):
        return KerasAdapter()

    def module(self):
        keras.utils.set_random_seed(0)
        return keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
