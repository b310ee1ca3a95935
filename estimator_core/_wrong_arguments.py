"""What messages say of wrong arguments and names: suggestions for misspelt ones, and arguments of tf.estimator that are
ignored or refused here, or accepted only by name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from estimator_core.errors import ArgumentError, ArgumentTypeError, did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
#: Arguments of exports in tf.estimator that do not exist here.
OF_EXPORTS = {
    "as_text": (False, "a program is binary; `estimator exports` describes it"),
    "strip_default_attrs": (False, "there are no operations with attributes"),
}


def leaving_out(owner: str, removed: Mapping[str, tuple[object, str]]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a function so that it accepts further arguments and drops them.

    Args:
        owner: the owner of the arguments, for messages.
        removed: the accepted value and the remedy for any other value, by name of the argument.

    Example:
        >>> @leaving_out("area", {"unit": (None, "it is metres")})
        ... def area(side):
        ...     return side * side
        >>> area(2, unit=None)
        4
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def called(*args: P.args, **given: P.kwargs) -> R:
            refused = [name for name, (default, _) in removed.items() if given.pop(name, default) != default]
            if refused:
                told = "; ".join(f"{name!r}: {removed[name][1]}" for name in refused)
                raise ArgumentError(f"{owner} no longer takes {told}.")
            return function(*args, **given)

        return called

    return decorate


def by_name(owner: str, order: Sequence[str], taken: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a method so that positional arguments that must be passed by name are refused, with their names.

    Args:
        owner: the owner of the arguments, for messages.
        order: the arguments in the order of tf.estimator, without `self`.
        taken: the number of arguments that are accepted by position.

    Raises:
        ArgumentTypeError: there are more positional arguments.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def called(*args: P.args, **given: P.kwargs) -> R:
            named = order[taken : len(args) - 1]
            if named:
                first, rest = " and ".join(order[:taken]), ", ".join(f"{name}=..." for name in named)
                raise ArgumentTypeError(f"{owner} takes {first} by position and the rest by name. Write {rest}")
            return function(*args, **given)

        return called

    return decorate


def suggestion(name: object, known: Iterable[object], otherwise: str) -> str:
    """Returns the question of `did_you_mean` for the middle of a sentence, or other words if no known name is similar.

    Example:
        >>> suggestion("los", ["loss", "accuracy"], "")
        "did you mean 'loss'?"
        >>> suggestion("size", ["loss", "accuracy"], "there are loss, accuracy")
        'there are loss, accuracy'
    """
    near = did_you_mean(name, known)
    return f"d{near[2:]}" if near else otherwise
