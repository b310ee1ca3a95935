"""Tests that checkpoints of earlier versions still load. A new format adds a directory here, and none is ever
rewritten.

All were written on Python 3.11 with jax 0.10.2 and orbax-checkpoint 0.12.8, and `frozen/format_3` by two processes.
estimator-cluster reads format 2, so its tests have the checkpoint of that format.
"""

from pathlib import Path

import jax
import numpy as np
import pytest

from estimator_core._checkpoint.manifest import FORMAT, read_manifest
from estimator_core._checkpoint.read import list_variables, read_checkpoint

FROZEN = Path(__file__).parent / "frozen"


def test_every_format_is_frozen_here():
    here = {f"format_{number}" for number in range(1, FORMAT + 1)} - {"format_2"}
    assert {path.name for path in FROZEN.iterdir()} == here


@pytest.mark.parametrize("path", sorted(FROZEN.iterdir()), ids=lambda path: path.name)
def test_it_reads_as_written(path):
    items = read_checkpoint(path)
    assert items.clock.tolist() == [12, 0, 7, 0]
    kernel, bias = items.variables["dense/kernel"], items.variables["dense/bias"]
    assert kernel.dtype == np.float32
    np.testing.assert_array_equal(kernel, np.arange(6).reshape(2, 3) / 4)
    assert bias.dtype.name == "bfloat16"
    assert bias.astype(float).tolist() == [1, -2]
    assert items.variables["none"].shape == (0, 3)
    assert int(items.model_state["count"]) == 5
    assert (jax.random.key_data(items.model_state["dropout/key"]) == jax.random.key_data(jax.random.key(3))).all()
    assert items.opt_state["0/mu/dense/kernel"].tolist() == [[0.5] * 3] * 2
    assert items.opt_state["0/mu/dense/kernel"].dtype == np.float16
    assert items.input == {"fingerprint": "abc", "examples": 384}
    assert items.hooks["Best"]["loss"] == 0.25
    assert items.hooks["Best"]["history"].tolist() == [3, 1, 2]
    assert items.timers == {"save": {"step": 10}}
    assert items.manifest == {"plugins": {"heads": "0.1.0"}}
    assert read_manifest(path).step == 12
    assert set(list_variables(path)) == {"dense/kernel", "dense/bias", "none", "dropout/key", "count"}
