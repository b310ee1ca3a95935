"""Tests that memory freed by a long compilation returns to the system before the steps run."""

import ctypes
import json
import subprocess
import sys

import jax
import jax.monitoring
import jax.numpy as jnp
import pytest

_COMPILED = "/jax/core/compile/backend_compile_duration"
#: Trains a step, leaves freed blocks below used blocks, and prints the resident memory after compilations of a length.
_PROGRAM = f"""
import json
import sys
import jax
import jax.monitoring
import numpy as np
import optax
import estimator_core as ec

def model_fn(features, labels, mode):
    bias = ec.get_variable("bias", ())
    loss = ((labels - bias) ** 2).mean()
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6

for model_dir in sys.argv[1:]:
    ec.Estimator(model_fn, model_dir=model_dir).train(lambda: [(np.ones(2), np.ones(2))], steps=1)
blocks = [np.ones(100_000, np.uint8) for _ in range(3000)]
del blocks[:-1]
found = [resident()]
for seconds in (0.1, 3.0):
    jax.monitoring.record_event_duration_secs({_COMPILED!r}, seconds)
    found.append(resident())
print(json.dumps(found))
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the allocator is not glibc's"
)
def test_only_a_long_compilation_returns_memory(tmp_path):
    directories = [str(tmp_path / name) for name in ("first", "second")]
    done = subprocess.run([sys.executable, "-c", _PROGRAM, *directories], check=True, stdout=subprocess.PIPE)
    before, after_short, after_long = json.loads(done.stdout)
    assert after_short > before - 20
    assert after_long < before - 200  # of the 300 MB that were freed


def test_jax_reports_compilations_by_this_name():
    told = []

    def listen(event, duration_secs, **details):
        told.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        jax.jit(lambda x: x * 3 + 1)(jnp.ones(7))
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert _COMPILED in told
