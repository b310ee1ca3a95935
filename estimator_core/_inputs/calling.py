"""Calling an input_fn: it is given those of `mode, params, config, input_context` that its signature names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from estimator_core.errors import ArgumentTypeError, InputError

#: A function that returns an input. It may take any of `ARGUMENTS`, by name.
InputFn = Callable[..., Any]

ARGUMENTS = ("mode", "params", "config", "input_context")

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def check_input_fn(input_fn: object) -> None:
    """Refuses what cannot be called as an input_fn, without calling it.

    Raises:
        ArgumentTypeError: not callable.
        InputError: a required argument that is none of `ARGUMENTS`.
    """
    if not callable(input_fn):
        raise ArgumentTypeError(
            f"`input_fn` must be callable, given: {input_fn!r}. Pass a function that returns the batches: "
            "`lambda: dataset`, or ec.inputs.numpy_input_fn(...) for arrays."
        )
    accepted_arguments(input_fn)


def call_input_fn(input_fn: InputFn, arguments: Mapping[str, Any]) -> Any:
    """`input_fn(...)` with those of `arguments` that it names; what it raises passes through.

    Example:
        >>> call_input_fn(lambda mode: mode, {"mode": "train", "params": {}})
        'train'
    """
    return input_fn(**{name: arguments[name] for name in accepted_arguments(input_fn) if name in arguments})


def accepted_arguments(input_fn: InputFn) -> list[str]:
    """Those of `ARGUMENTS` that an input_fn names.

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
