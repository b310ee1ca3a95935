"""The outputs of signatures that a model_fn exports, and the comparison of outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError

SINGLE_OUTPUT = "output"


@dataclass(frozen=True)
class PredictOutput:
    """Any number of arrays by name.

    Args:
        outputs: arrays by name, or a single array, which is named "output".
        class_names: the class names by id. A raw signature returns them instead of the ids in the outputs "classes" and
            "all_classes".

    Raises:
        ArgumentError: there are no outputs, a name is not a string, or a value is not an array.

    Example:
        >>> import numpy as np
        >>> list(PredictOutput(np.zeros((2, 1))).outputs)
        ['output']

    Source: `tf.estimator.export.PredictOutput`.
    """

    outputs: Any
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        outputs = self.outputs if isinstance(self.outputs, Mapping) else {SINGLE_OUTPUT: self.outputs}
        if not outputs:
            raise ArgumentError("PredictOutput needs at least one output.")
        for name, value in outputs.items():
            if not isinstance(name, str):
                raise ArgumentError(f"Prediction output key must be a string; got {name!r}.")
            _check_array(value, f"Prediction output {name!r}")
        object.__setattr__(self, "outputs", dict(outputs))


@dataclass(frozen=True)
class ClassificationOutput:
    """The scores of classes, the classes, or both.

    Args:
        scores: float [batch, classes], or None.
        classes: class ids, integer [batch, classes], or None.
        class_names: the class names by id. A raw signature returns them instead of `classes`.

    Raises:
        ArgumentError: both are None, or one of them has the wrong dtype.

    Example:
        >>> import numpy as np
        >>> ClassificationOutput(scores=np.zeros((2, 3), np.float32)).classes is None
        True

    Source: `tf.estimator.export.ClassificationOutput`.
    """

    scores: Any = None
    classes: Any = None
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.scores is None and self.classes is None:
            raise ArgumentError(
                "Cannot create a ClassificationOutput with empty arguments: at least one of scores and classes must "
                "be set."
            )
        if self.scores is not None:
            _check_array(self.scores, "Classification scores", "f", "a float array")
        if self.classes is not None:
            _check_array(self.classes, "Classification classes", "iu", "an array of integer class ids")

    @property
    def outputs(self) -> dict[str, Any]:
        """The arrays by name."""
        return {
            name: value for name, value in (("classes", self.classes), ("scores", self.scores)) if value is not None
        }


@dataclass(frozen=True)
class RegressionOutput:
    """One number (or several) per example.

    Args:
        value: the values, float [batch, ...].

    Raises:
        ArgumentError: the value is not a float array.

    Example:
        >>> import numpy as np
        >>> list(RegressionOutput(np.zeros((2, 1), np.float32)).outputs)
        ['outputs']

    Source: `tf.estimator.export.RegressionOutput`.
    """

    value: Any

    def __post_init__(self) -> None:
        _check_array(self.value, "Regression output value", "f", "a float array")

    @property
    def outputs(self) -> dict[str, Any]:
        """The array, by its name."""
        return {"outputs": self.value}


@dataclass(frozen=True, kw_only=True)
class EvalOutput:
    """Loss, predictions and metrics of an evaluation signature.

    Args:
        loss: the loss, or arrays by name, or None.
        predictions: the predictions, or arrays by name, or None.
        metrics: streaming metrics by name, or None.

    Source: `tf.estimator.export.EvalOutput`.
    """

    loss: Any = None
    predictions: Any = None
    metrics: Mapping[str, Any] | None = None


#: The output of one signature of an export.
ExportOutput = PredictOutput | ClassificationOutput | RegressionOutput | EvalOutput


def _check_array(value: object, what: str, kinds: str | None = None, expected: str = "an array") -> None:
    dtype = getattr(value, "dtype", None)
    # numpy assigns kind "V" to bfloat16 and the float8 types, but they are floats.
    fits = dtype is not None and (kinds is None or dtype.kind in kinds or ("f" in kinds and "float" in str(dtype)))
    if not fits:
        raise ArgumentError(f"{what} must be {expected}; got {value!r}.")


_NARROW = MappingProxyType({"bfloat16": 2e-2, "float16": 5e-3})


@dataclass(frozen=True, kw_only=True)
class CloseOutputs:
    """Accepts an output if no value differs by more than a fraction of the largest value.

    Args:
        tolerance: the fraction of the largest finite value, or of 1 if that value is below 1.
        narrow: the fraction for outputs of particular dtypes, by dtype name.

    Example:
        >>> check = CloseOutputs()
        >>> check.difference(np.ones(2), np.array([1.0, 1.000001])) is None
        True
        >>> check.difference(np.ones(2), np.array([1.0, 1.1]))
        'at [1] is 1.1 instead of 1.0 (1 of 2 values differ by more than 1e-05).'
    """

    tolerance: float = 1e-5
    narrow: Mapping[str, float] = field(default_factory=lambda: _NARROW)

    def difference(self, expected: np.ndarray, found: np.ndarray) -> str | None:
        """Describes the first value that differs too much; None if all are close."""
        if expected.shape != found.shape:
            return f"has shape {found.shape} instead of {expected.shape}."
        relative = self.narrow.get(str(expected.dtype), self.tolerance)
        widest = np.complex128 if "c" in (expected.dtype.kind, found.dtype.kind) else np.float64
        wide = expected.astype(widest), found.astype(widest)
        largest = float(np.max(np.abs(wide[0]), initial=0.0, where=np.isfinite(wide[0])))
        same = np.isclose(*wide, rtol=0, atol=relative * max(1.0, largest), equal_nan=True)
        if same.all():
            return None
        place = tuple(int(index) for index in np.argwhere(~same)[0])
        return (
            f"at {list(place)} is {found[place]} instead of {expected[place]} "
            f"({int((~same).sum())} of {same.size} values differ by more than {relative})."
        )
