"""Calls an input_fn until it returns batches, with those of `mode, params, config, input_context` that it names.

A result that is not batches is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from estimator_core._inputs.context import InputContext
from estimator_core.errors import ArgumentTypeError, InputError

#: A function that returns an input. It may take any of `ARGUMENTS`, by name.
InputFn = Callable[..., Any]

ARGUMENTS = ("mode", "params", "config", "input_context")

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def check_input_fn(input_fn: object) -> None:
    """Refuses what cannot be called as an input_fn, without calling it.

    Raises:
        ArgumentTypeError: it is not callable.
        InputError: it requires an argument that is not in `ARGUMENTS`.
    """
    if not callable(input_fn):
        raise ArgumentTypeError(
            f"`input_fn` must be callable, given: {input_fn!r}. Pass a function that returns the batches: "
            "`lambda: dataset`, or ec.inputs.numpy_input_fn(...) for arrays."
        )
    accepted_arguments(input_fn)


def call_input_fn(input_fn: InputFn, arguments: Mapping[str, object]) -> Any:
    """Calls `input_fn` with those of `arguments` that it names. Its errors pass through.

    Example:
        >>> call_input_fn(lambda mode: mode, {"mode": "train", "params": {}})
        'train'
    """
    return input_fn(**{name: arguments[name] for name in accepted_arguments(input_fn) if name in arguments})


def accepted_arguments(input_fn: InputFn) -> list[str]:
    """The names in `ARGUMENTS` that an input_fn takes.

    Raises:
        InputError: it requires another argument.
    """
    try:
        parameters = inspect.signature(input_fn).parameters.values()
    except (TypeError, ValueError):  # a callable written in C without a signature: nothing can be passed by name
        return []
    unexpected = [
        p.name
        for p in parameters
        if p.kind not in _VARIADIC
        and p.default is p.empty
        and (p.name not in ARGUMENTS or p.kind is inspect.Parameter.POSITIONAL_ONLY)
    ]
    if unexpected:
        raise InputError(
            f"input_fn ({input_fn!r}) has following not expected args: {unexpected}. It may take any of "
            f"{', '.join(ARGUMENTS)}, by name; give other arguments a default or bind them with functools.partial."
        )
    return [p.name for p in parameters if p.kind in _BY_NAME and p.name in ARGUMENTS]


_ARRAYS_HELP = (
    "An input_fn returns an iterable of batches. For arrays in memory use "
    "ec.inputs.numpy_input_fn(x, y, batch_size=..., shuffle=...)."
)


def make_input(input_fn: InputFn, arguments: Mapping[str, object]) -> Any:
    """Calls `input_fn`, and its result as long as that is a function, until an input is returned.

    Only the outermost function that names `input_context` gets the process's shard: what it returns is sharded already.

    Raises:
        InputError: its arguments cannot be filled, or it returns arrays, None, text or numbers.

    Example:
        >>> make_input(lambda params: lambda: [params], {"params": 3})
        [3]
    """
    result: Any = input_fn
    for _ in range(5):
        accepted = accepted_arguments(result)
        result = result(**{name: arguments[name] for name in accepted if name in arguments})
        if "input_context" in accepted:
            arguments = {**arguments, "input_context": InputContext()}
        if result is None or isinstance(result, (str, bytes, bool, int, float)):
            raise InputError(f"input_fn returned {result!r}. {_ARRAYS_HELP}")
        if _is_iterable(result):
            _refuse_arrays(result)
            return result
        if not callable(result):
            raise InputError(f"input_fn returned a {type(result).__qualname__}: it cannot be iterated. {_ARRAYS_HELP}")
    raise InputError("input_fn returned a function that returns a function and so on. Return the input itself.")


def _is_iterable(result: object) -> bool:
    kinds = ("__iter__", "__next__", "as_numpy_iterator", "__getitem__")
    return any(hasattr(result, name) for name in kinds)


def _refuse_arrays(result: object) -> None:
    if isinstance(result, Mapping):
        raise InputError(f"input_fn returned a dict, not batches. {_ARRAYS_HELP}")
    if _is_array(result):
        raise InputError(
            f"input_fn returned a {type(result).__qualname__}, not batches. {_ARRAYS_HELP} For a DataFrame: "
            "ec.inputs.pandas_input_fn."
        )
    if isinstance(result, (tuple, list)):
        items: tuple[Any, ...] | list[Any] = result
        of_arrays = any(_is_array(item) for item in items)
        if isinstance(result, tuple) and (of_arrays or any(isinstance(item, Mapping) for item in items)):
            wrong = "" if len(items) == 2 else "input_fn should return (features, labels) as a len 2 tuple. "
            raise InputError(
                f"{wrong}input_fn returned a tuple of {len(items)} arrays or dicts: it would be read as "
                f"{len(items)} batches. {_ARRAYS_HELP} For one batch return a list of it: [(features, labels)]."
            )
        if of_arrays:
            raise InputError(
                f"input_fn returned a list of {len(items)} items with bare arrays among them: they could be batches or "
                f"features and labels. {_ARRAYS_HELP} For a list of batches give each as (features, labels) or a dict."
            )


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray) or (hasattr(value, "__array__") and not hasattr(value, "__next__"))
