"""Fits the values of a checkpoint to variables. Errors say what is missing and what exists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from estimator_core.errors import VariableError, did_you_mean
from estimator_core.model import VariableSpec, check_value

#: A function that returns the arrays of a checkpoint by path. Its argument is the file or directory, as the user wrote
#: it.
CheckpointReader: TypeAlias = Callable[[str], Mapping[str, np.ndarray]]


def is_record(spec: VariableSpec) -> bool:
    """Returns whether a variable is a row of bytes that the model itself sets, such as a description of its data.

    The bytes of an earlier model would be false for this one. Patterns and scopes leave such a variable out.
    """
    of_bytes = spec.dtype == np.uint8 and len(spec.shape) == 1
    return of_bytes and not spec.trainable and not callable(spec.initializer)


def missing_tensor(tensor: str, variable: str, checkpoint: str, present: Iterable[str]) -> VariableError:
    """Returns the error about a name that the checkpoint does not have."""
    names = sorted(present)
    return VariableError(
        f"Tensor {tensor!r}, for variable {variable!r}, is not found in the checkpoint {checkpoint}. "
        f"{near(tensor, names)}"
    )


def near(name: str, names: Iterable[str]) -> str:
    """Returns a sentence with the names closest to a wrong one.

    Example:
        >>> near("dense/kernle", ["dense/kernel", "dense/bias"])
        "Did you mean 'dense/kernel'? Known names: dense/bias, dense/kernel."
    """
    names = sorted(names)
    listed = ", ".join(names[:20]) + (f", and {len(names) - 20} more" if len(names) > 20 else "")
    return f"{did_you_mean(name, names)} Known names: {listed or 'none'}.".lstrip()


def check_shape(spec: VariableSpec, tensor: str, value: np.ndarray, checkpoint: str) -> None:
    """Refuses a value of another shape or of another kind of number.

    Raises:
        VariableError: the value does not fit. The message names both.
    """
    check_value(spec, value, f"tensor {tensor!r}", f"in the checkpoint {checkpoint}")


def fitted(
    spec: VariableSpec, tensor: str, values: Mapping[str, np.ndarray], checkpoint: str
) -> tuple[np.ndarray, str]:
    """Returns the value of a checkpoint as the value of a variable, and a note of the conversion.

    Raises:
        VariableError: the checkpoint has no such tensor, or it does not fit.
    """
    if tensor not in values:
        raise missing_tensor(tensor, spec.name, checkpoint, values)
    value = values[tensor]
    check_shape(spec, tensor, value, checkpoint)
    remark = f"cast from {value.dtype}" if value.dtype != spec.dtype else ""
    return np.array(value, spec.dtype), remark
