"""Operations that TensorFlow does not know are removed or replaced in a program. Runs without TensorFlow."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from estimator_exporters.saved_model.old_readers import for_old_readers, foreign_calls

BATCH = (jax.ShapeDtypeStruct((4, 8), np.float32),)


def module_of(function):
    return export.export(jax.jit(function), platforms=("cpu",))(*BATCH).mlir_module_serialized


def spread(x):
    mesh = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("data", "model"))
    return jax.lax.with_sharding_constraint(jnp.tanh(x), NamedSharding(mesh, PartitionSpec(None, "model"))) + 1


def test_how_arrays_were_spread_over_devices_is_left_out():
    module = module_of(spread)
    assert b"sharding_constraint" in module
    assert foreign_calls(module) == []
    assert b"sharding_constraint" not in for_old_readers(module, "Signature 'x'")


def test_newer_operations_become_what_they_are_made_of():
    module = module_of(lambda x: jax.lax.top_k(x, 2)[0])
    assert b"composite" in module
    assert b"composite" not in for_old_readers(module, "Signature 'x'")
