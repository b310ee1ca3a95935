"""Every error that this framework raises on purpose.

Each class also derives from the built-in exception that a caller would expect, so `except ValueError` keeps working.
Messages say what happened, where, and what to do.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral
from typing import Any

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "BackendUnavailableError",
    "CheckpointCorruptError",
    "CheckpointError",
    "CheckpointMismatchError",
    "CheckpointNotFoundError",
    "EstimatorError",
    "ExportError",
    "HookError",
    "InputError",
    "ModelDirLockedError",
    "ModelFnError",
    "NanLossDuringTrainingError",
    "PluginError",
    "PluginLookupError",
    "PreemptedError",
    "ProcessLostError",
    "SupersededError",
    "VariableError",
    "check_count",
    "did_you_mean",
    "is_integer",
]


class EstimatorError(Exception):
    """Base of all errors raised by estimator-core and its plugins."""


class ArgumentError(EstimatorError, ValueError):
    """A public argument has a value that cannot be used."""


class ArgumentTypeError(EstimatorError, TypeError):
    """A public argument has a type that cannot be used."""


class ModelFnError(EstimatorError, ValueError):
    """The user's model_fn, or its result, breaks the contract."""


class VariableError(EstimatorError, ValueError):
    """A variable is declared, read or written in a way that cannot work."""


class InputError(EstimatorError, ValueError):
    """An input_fn or one of its batches breaks its contract."""


class HookError(EstimatorError, RuntimeError):
    """A hook breaks its contract."""


class NanLossDuringTrainingError(EstimatorError, RuntimeError):
    """The loss or the weights are no longer finite.

    Attributes:
        step: the first global step with a value that is not finite; None if unknown.
    """

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message)
        self.step = step


class CheckpointError(EstimatorError, RuntimeError):
    """A checkpoint cannot be written or read."""


class CheckpointNotFoundError(CheckpointError, ValueError):
    """There is no checkpoint where one is needed."""


class CheckpointCorruptError(CheckpointError):
    """A checkpoint is torn, or its contents fail their checksums."""


class CheckpointMismatchError(CheckpointError, ValueError):
    """A checkpoint does not fit the model: names, shapes or dtypes differ."""


class ModelDirLockedError(EstimatorError, RuntimeError):
    """Another process is training in this model_dir."""


class SupersededError(EstimatorError, RuntimeError):
    """Another run has become the writer of this model_dir. This run does not save any more."""


class ExportError(EstimatorError, RuntimeError):
    """An export cannot be written, or does not reproduce the estimator."""


class BackendUnavailableError(EstimatorError, RuntimeError):
    """The requested device backend cannot be used on this machine."""


class ProcessLostError(EstimatorError, RuntimeError):
    """Another process of the run was killed, crashed, failed or stopped responding, so this process cannot continue.

    Attributes:
        index: the index of the lost process.
    """

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index


class PluginError(EstimatorError, RuntimeError):
    """A plugin package is broken or does not fit this core."""


class PluginLookupError(PluginError, LookupError):
    """There is no component of the requested kind and name."""


class PreemptedError(EstimatorError, RuntimeError):
    """The platform requested that training stops. The state is saved, and training can be resumed.

    Attributes:
        step: the global step that was saved.
    """

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message)
        self.step = step

    def _render_traceback_(self) -> list[str]:
        """Returns only the message for a notebook, because the code did not fail."""
        return [str(self)]


def is_integer(value: object) -> bool:
    """Returns whether a value is an integer of Python or numpy. Truth values are not.

    Args:
        value: any value.

    Example:
        >>> [is_integer(value) for value in (2, 2.0, True, "2")]
        [True, False, False, False]
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_count(name: str, value: Any, *, least: int = 1) -> int:
    """Returns the value of an argument that is a whole number, as an int.

    Args:
        name: the name of the argument, for messages.
        value: the value of the argument.
        least: the smallest accepted value.

    Raises:
        ArgumentTypeError: it is not an integer.
        ArgumentError: it is below `least`, or needs more than 64 bits.

    Example:
        >>> check_count("batch_size", 4)
        4
        >>> check_count("batch_size", 0)
        Traceback (most recent call last):
            ...
        estimator_core.errors.ArgumentError: batch_size must be at least 1, given: 0.
    """
    if not is_integer(value):
        cure = " Convert it with int(...)." if hasattr(value, "dtype") else ""
        raise ArgumentTypeError(f"{name} must be an integer, given: {value!r}.{cure}")
    number = int(value)
    if (bits := number.bit_length()) > 63:
        raise ArgumentError(f"{name} must be from {least} to 2**63 - 1, given: an integer of {bits} bits.")
    if number < least:
        raise ArgumentError(f"{name} must be at least {least}, given: {number}.")
    return number


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Returns a question for the end of a message about an unknown name; "" if no known name is similar.

    Args:
        name: the name that is not known.
        known: the names that could be meant.

    Example:
        >>> did_you_mean("los", ["loss", "accuracy"])
        " Did you mean 'loss'?"
    """
    near = get_close_matches(str(name), map(str, known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
