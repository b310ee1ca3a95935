"""Detection of programs that call back into Python. Exports must not contain them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.extend import core

from estimator_core.errors import ExportError

_CALLS_BACK = ("callback", "debug_print")


def refuse_callbacks(function: Callable[..., Any], arguments: tuple[Any, ...], where: str) -> None:
    """Refuses a function with callbacks, by name. The error of jax does not name them if it cannot lower them.

    Args:
        function: the function that could not be lowered.
        arguments: the arguments of the function, or their shapes and dtypes.
        where: the name of the function in messages.

    Raises:
        ExportError: the function calls back.
    """
    try:
        program = jax.make_jaxpr(function)(*arguments).jaxpr
    except Exception:
        return  # it cannot be traced either, and the caller knows the reason
    found = sorted({name for name in _primitives(program) if _calls_back(name)})
    if found:
        raise ExportError(calling_back(where, found))


def calling_back(where: str, found: list[str]) -> str:
    """Returns the message about a program that calls back."""
    return (
        f"{where} calls back into Python ({', '.join(found)}), which no export may. Leave jax.debug.print, "
        "pure_callback and io_callback out of the mode that is exported; work for the host belongs into a "
        "HostTransform."
    )


def _calls_back(name: str) -> bool:
    return any(part in name for part in _CALLS_BACK)


def _primitives(program: Any) -> Iterator[str]:
    for equation in program.eqns:
        yield equation.primitive.name
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(inner, core.ClosedJaxpr):
                    yield from _primitives(inner.jaxpr)
                elif isinstance(inner, core.Jaxpr):
                    yield from _primitives(inner)
