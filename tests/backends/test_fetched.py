"""Tests of fetching results: all results of a program are copied to host memory at once, with the values of
`jax.device_get`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core._backends.device_get import fetched


def results() -> Any:
    return jax.jit(lambda x: {"a": x + 1, "b": (x.sum(), (x * 2).astype(jnp.bfloat16))})(np.arange(3.0, dtype="f4"))


def test_values_are_those_of_device_get() -> None:
    found, expected = fetched(results()), jax.device_get(results())
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for ours, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert isinstance(ours, np.ndarray)
        assert (ours.shape, ours.dtype, ours.tobytes()) == (other.shape, other.dtype, other.tobytes())


def test_arrays_of_the_host_take_no_detour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(jax, "device_get")
    assert fetched({"a": jnp.ones(2)})["a"].tolist() == [1.0, 1.0]


def test_keys_and_what_is_no_array_stay_what_they_are() -> None:
    key, there = jax.random.key(1), np.ones(2)
    found = fetched({"key": key, "there": there, "number": 3})
    assert found["key"].dtype == key.dtype
    assert found["there"] is there
    assert found["number"] == 3
