"""The adapters import a library only when it is used."""

import subprocess
import sys

PROGRAM = """
import sys
import jax
import estimator_core as ec
from estimator_core._model.scope import declaring
def trace(x):
    with declaring({}, mode="train"):
        try:
            ec.module(3, name="f")
        except ec.errors.EstimatorError as error:
            print(error)
jax.eval_shape(trace, 1.0)
print(sorted({"flax", "equinox", "keras", "orbax"} & set(sys.modules)))
"""


def test_asking_every_adapter_imports_no_library():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    message, imported = done.stdout.splitlines()
    assert "Installed adapters: equinox, keras, linen, nnx." in message
    assert imported == "[]"
