"""Tests of the memory that traces leave in a process that makes many of them."""

import gc

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr

from estimator_core._model.scope import declaring

#: The other caches of JAX keep the newest 2,048 traces of a function.
SCOPES = 4_000


def traced(x):
    with declaring({}, mode="train"):
        return jnp.subtract(x, 1.0)


def test_the_traces_of_old_scopes_are_forgotten():
    for _ in range(SCOPES):
        jax.eval_shape(lambda x: traced(x), jax.ShapeDtypeStruct((2,), "float32"))
    gc.collect()
    kept = sum(isinstance(one, Jaxpr) for one in gc.get_objects())
    assert kept < 0.75 * SCOPES, "a trace of each scope is still in memory"
