"""A checkpoint's values fitted to variables, with errors that say what is missing and what is there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from estimator_core._model.variables import VariableSpec
from estimator_core.errors import VariableError


def missing_tensor(tensor: str, variable: str, checkpoint: str, present: Iterable[str]) -> VariableError:
    """The error of a name that the checkpoint lacks."""
    names = sorted(present)
    return VariableError(
        f"Tensor {tensor!r}, for variable {variable!r}, is not found in the checkpoint {checkpoint}. "
        f"{near(tensor, names)}"
    )


def near(name: str, names: Iterable[str]) -> str:
    """A sentence with the names closest to one that is wrong.

    Example:
        >>> near("dense/kernle", ["dense/kernel", "dense/bias"])
        "Did you mean 'dense/kernel'? There are: dense/bias, dense/kernel."
    """
    names = sorted(names)
    close = difflib.get_close_matches(name, names, n=1)
    listed = ", ".join(names[:20]) + (f", and {len(names) - 20} more" if len(names) > 20 else "")
    return (f"Did you mean {close[0]!r}? " if close else "") + f"There are: {listed or 'none'}."


def check_shape(spec: VariableSpec, tensor: str, value: Any, checkpoint: str) -> None:
    """Refuses a value of another shape or of another kind of number.

    Raises:
        VariableError: naming both.
    """
    if tuple(value.shape) != spec.shape:
        raise VariableError(
            f"Shape of variable {spec.name!r} ({list(spec.shape)}) doesn't match with shape of tensor {tensor!r} "
            f"({list(value.shape)}) in "
            f"the checkpoint {checkpoint}. Leave the variable out, or make it of that shape."
        )
    if _kind(value.dtype) != _kind(spec.dtype):
        raise VariableError(
            f"Variable {spec.name!r} is {spec.dtype}, but tensor {tensor!r} in the checkpoint {checkpoint} is "
            f"{value.dtype}: numbers of "
            "another kind are not converted."
        )


def fitted(
    spec: VariableSpec, tensor: str, values: Mapping[str, np.ndarray], checkpoint: str
) -> tuple[np.ndarray, str]:
    """A checkpoint's value as the variable's, and what was done to it.

    Raises:
        VariableError: the checkpoint has no such tensor, or it does not fit.
    """
    if tensor not in values:
        raise missing_tensor(tensor, spec.name, checkpoint, values)
    value = values[tensor]
    check_shape(spec, tensor, value, checkpoint)
    remark = f"cast from {value.dtype}" if value.dtype != spec.dtype else ""
    return np.array(value, spec.dtype), remark


def _kind(dtype: Any) -> str:
    import jax.numpy as jnp

    for kind in (jnp.floating, jnp.integer, jnp.complexfloating):
        if jnp.issubdtype(dtype, kind):
            return kind.__name__
    return str(dtype)
