"""In which dtype model_fn computes, while the variables themselves stay as they are declared."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._model.variables import VariableSpec

_FULL = np.dtype(np.float32)
_active: ContextVar[np.dtype[Any] | None] = ContextVar("estimator_core_compute_dtype", default=None)


@contextlib.contextmanager
def computing_in(dtype: np.dtype[Any] | None) -> Generator[None]:
    """Gives trainable float32 variables out in another dtype; None leaves them as they are.

    Differentiation goes through the conversion, so gradients come out in the variables' own dtype.
    """
    token = _active.set(dtype)
    try:
        yield
    finally:
        _active.reset(token)


def as_computed(spec: VariableSpec, value: Any) -> Any:
    """A variable's value as model_fn gets it; model state, such as running statistics, keeps its precision, and so does
    what is outside the device's memory.
    """
    kept = not spec.trainable or spec.memory is not None
    return value if kept else reduced(value, _active.get())


def as_stored(spec: VariableSpec, value: Any) -> Any:
    """A value that model_fn computed in the reduced dtype, for a variable of the model state."""
    dtype = _active.get()
    return value.astype(spec.dtype) if dtype is not None and value.dtype == dtype else value


def reduced(tree: object, dtype: np.dtype[Any] | None) -> Any:
    """The float32 arrays of a tree in the dtype to compute in."""
    return tree if dtype is None else jax.tree.map(lambda leaf: _converted(leaf, _FULL, dtype), tree)


def restored(tree: object, dtype: np.dtype[Any] | None) -> Any:
    """The arrays of a tree that were computed in the reduced dtype, as float32."""
    return tree if dtype is None else jax.tree.map(lambda leaf: _converted(leaf, dtype, _FULL), tree)


def _converted(leaf: object, source: np.dtype[Any], target: np.dtype[Any]) -> Any:
    return jnp.asarray(leaf, target) if getattr(leaf, "dtype", None) == source else leaf
