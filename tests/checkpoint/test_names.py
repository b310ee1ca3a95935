"""Tests that any variable name survives a save and a restore."""

import tempfile

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from estimator_core._checkpoint import CheckpointItems, CheckpointStore
from estimator_core._checkpoint.read import read_checkpoint

NAMES = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=5, unique=True)


@settings(max_examples=15, deadline=None)
@given(NAMES)
@example(["a", "a/0", "a/0/0", "a.0", "a/c/0", "zarr.json", "a/zarr.json"])
@example(["..", "/etc", "x" * 300, "ä/ü", "a\nb", "{", "%2F", "0"])
def test_names_come_back(names):
    variables = {name: np.arange(index + 1.0) for index, name in enumerate(names)}
    with tempfile.TemporaryDirectory() as model_dir:
        with CheckpointStore(model_dir) as store:
            store.save(1, CheckpointItems(clock=np.array([1, 0, 0, 0], np.uint32), variables=variables))
        found = read_checkpoint(model_dir).variables
    assert found.keys() == variables.keys()
    assert all((found[name] == variables[name]).all() for name in names)
