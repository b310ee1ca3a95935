"""Errors that name the place of a program at which they were found."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import jax

from estimator_core.errors import EstimatorError, ModelFnError
from estimator_core.inputs import Batch


class OtherCodeError(ModelFnError):
    """An error of code outside of this project, with its place. Its cause is the error itself."""


def fault(place: str, error: Exception, batch: Batch | None = None) -> Exception:
    """Returns an error with its place. Errors of this project contain advice. Errors of other code receive their line.

    Args:
        place: the beginning of the message.
        error: the error that was raised.
        batch: the batch that was traced, which the message describes.

    Example:
        >>> str(fault("The training input", EstimatorError("it is empty.")))
        'The training input: it is empty.'
    """
    if isinstance(error, EstimatorError) and error.args:
        error.args = (f"{place}: {error}", *error.args[1:])
        return error
    what = f"{place}: {type(error).__name__}: {error}{line_of(error)}."
    if batch is not None and not _is_of_a_name(error):
        what += f" The batch has {_described(batch)}; make the input and model_fn agree."
    found = OtherCodeError(what)
    found.__cause__ = error
    return found


def as_raised(faults: Sequence[Exception]) -> list[Exception]:
    """Returns the faults of a refused run, with a note on how to run without these checks.

    A single error of other code keeps its type, so that code that expects it can catch it. Its place becomes a note.
    """
    told = list(faults)
    if len(told) == 1 and isinstance(told[0], OtherCodeError) and isinstance(told[0].__cause__, Exception):
        told = [told[0].__cause__]
        told[0].add_note(str(faults[0]))
    for each in told:
        each.add_note(_SWITCH)
    return told


_SWITCH = (
    "This was found before the first step; nothing has been written. If it becomes right later, set "
    "ESTIMATOR_OPTION_ESTIMATOR_EXPERIMENT_REHEARSE=false to run without these checks."
)


def line_of(error: Exception) -> str:
    """Returns the innermost line of code outside installed packages and this project, in brackets, or an empty string.

    Args:
        error: the error that was raised.

    Example:
        >>> line_of(KeyError("x"))
        ''
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(part in frame.filename for part in _OTHERS)]
    return f" ({own[-1].filename}:{own[-1].lineno}: {own[-1].line})" if own else ""


def _is_of_a_name(error: Exception) -> bool:
    """Returns whether a name of the code is unknown, which no batch can cause."""
    of_module = isinstance(error, AttributeError) and isinstance(error.obj, ModuleType)
    return of_module or isinstance(error, (NameError, ImportError))


_OTHERS = ("site-packages", "estimator_core", "estimator_experiment", "<frozen", "/lib/python")


def _described(batch: Batch) -> str:
    labels = "no labels" if batch.labels is None else f"labels {_shapes(batch.labels)}"
    return f"features {_shapes(batch.features)} and {labels}"


def _shapes(tree: Any) -> str:
    shown = jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", tree)
    return str(shown).replace("'", "")
