"""Checks whether values from another source fit a variable, or the instance into which they are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimator_core._model.variables import VariableSpec
from estimator_core.errors import VariableError


def check_value(spec: VariableSpec, value: np.ndarray, named: str, where: str) -> None:
    """Refuses a value with another shape or another kind of number.

    Args:
        spec: the record of the variable.
        value: the value for the variable.
        named: the name of the value in the error, such as `tensor 'kernel'`.
        where: the place of the value, such as `in the checkpoint runs/old`.

    Raises:
        VariableError: the value does not fit. The message names both.

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


def check_names(kind: str, expected: Mapping[str, tuple[int, ...]], values: Mapping[str, Any]) -> None:
    """Refuses values that do not fit an instance.

    Raises:
        VariableError: a name or shape differs. The message has a line for each.
    """
    lines = [f"  - {name}: not given" for name in expected if name not in values]
    lines += [f"  + {name}: not in the instance" for name in values if name not in expected]
    lines += [
        f"  ! {name}: given {tuple(values[name].shape)}, in the instance {tuple(shape)}"
        for name, shape in expected.items()
        if name in values and tuple(values[name].shape) != tuple(shape)
    ]
    if lines:
        raise VariableError(f"The values do not fit this {kind}; nothing was changed:\n" + "\n".join(sorted(lines)))
