"""Whether a value from elsewhere can be that of a variable."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from estimator_core._model.variables import VariableSpec
from estimator_core.errors import VariableError


def check_value(spec: VariableSpec, value: np.ndarray, named: str, where: str) -> None:
    """Refuses a value of another shape or of another kind of number.

    Args:
        spec: the variable.
        value: would be its value.
        named: how the error calls the value, such as `tensor 'kernel'`.
        where: where it was found, such as `in the checkpoint runs/old`.

    Raises:
        VariableError: naming both.

    Example:
        >>> from estimator_core._model.variables import make_spec
        >>> check_value(make_spec("bias", (2,)), np.zeros((2,)), "the value", "of the table")
    """
    if tuple(value.shape) != spec.shape:
        raise VariableError(
            f"Shape of variable {spec.name!r} ({list(spec.shape)}) doesn't match with shape of {named} "
            f"({list(value.shape)}) {where}. Leave the variable out, or make it of that shape."
        )
    if _kind(value.dtype) != _kind(spec.dtype):
        raise VariableError(
            f"Variable {spec.name!r} is {spec.dtype}, but {named} {where} is {value.dtype}: numbers of another kind "
            "are not converted."
        )


def _kind(dtype: np.dtype) -> str:
    for kind in (jnp.floating, jnp.integer, jnp.complexfloating):
        if jnp.issubdtype(dtype, kind):
            return kind.__name__
    return str(dtype)
