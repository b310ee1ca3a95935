"""Without the adapters, the error about a real module of each library names this package."""

import equinox as eqx
import keras
import pytest
from flax import linen, nnx

import estimator_core as ec
from estimator_core.errors import ArgumentTypeError
from estimator_core.plugins import Plugins, using_plugins
from plugins.modules.tests.test_equinox import Normalised


class Network(nnx.Module):
    def __init__(self, rngs):
        self.linear = nnx.Linear(2, 3, rngs=rngs)


class Layer(keras.Layer):
    pass


@pytest.mark.parametrize(
    ("given", "adapter"),
    [
        (lambda rngs: Network(rngs), "nnx"),
        (nnx.Linear(2, 3, rngs=nnx.Rngs(0)), "nnx"),
        (linen.Dense(3), "linen"),
        (lambda key: eqx.nn.Linear(2, 3, key=key), "equinox"),
        (lambda key: eqx.nn.make_with_state(Normalised)(key), "equinox"),
        (lambda: keras.Sequential([keras.layers.Dense(3)]), "keras"),
        (Layer, "keras"),
        (keras.layers.Dense(3), "keras"),
    ],
    ids=[
        "nnx",
        "nnx instance",
        "linen",
        "equinox",
        "equinox with state",
        "keras model",
        "keras layer",
        "keras instance",
    ],
)
def test_the_package_is_named(runner, batch, given, adapter):
    message = f"cannot adapt a module .* there is no adapter '{adapter}'(.|\n)*estimator-modules .* provides it, but is"
    with using_plugins(Plugins(autoload=False, environ={})), pytest.raises(ArgumentTypeError, match=message):
        runner(lambda x: ec.module(given, name="net")(x)).discover(batch)
