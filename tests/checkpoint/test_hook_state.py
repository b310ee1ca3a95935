"""Tests of hook states: everything that JSON and arrays can express is restored unchanged."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from estimator_core._checkpoint.items import join_hook_states, split_hook_states

NAMES = st.text("abc/._é ", min_size=1, max_size=6)
ARRAYS = hnp.arrays(st.sampled_from([np.float32, np.int64, np.bool_]), hnp.array_shapes(max_dims=2, max_side=3))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | ARRAYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def same(left, right):
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and left.tobytes() == right.tobytes() and left.shape == right.shape
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right


@settings(deadline=None)
@given(st.dictionaries(NAMES.filter(lambda name: "/" not in name), st.dictionaries(st.sampled_from("xyz"), VALUES)))
def test_states_come_back(states):
    tree, arrays = split_hook_states(states)
    assert same(join_hook_states(json.loads(json.dumps(tree)), arrays), states)


def test_numpy_scalars_become_arrays_and_tuples_lists():
    tree, arrays = split_hook_states({"H": {"n": np.float32(2), "t": (1, 2)}})
    state = join_hook_states(tree, arrays)["H"]
    assert (state["n"].dtype, state["n"].shape, float(state["n"])) == (np.float32, (), 2.0)
    assert state["t"] == [1, 2]
