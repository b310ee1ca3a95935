"""The base of all suites: a subclass can replace a test only with a stated reason."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from estimator_core.errors import ArgumentError

_Function = TypeVar("_Function", bound=Callable[..., Any])
_REASON = "__overrides_suite_test_because__"
_HOME = "estimator_testing"


class Suite:
    """The base of the conformance suites.

    A subclass that replaces a test of a suite, itself or through a mixin, must state the reason with `overrides`.

    Raises:
        ArgumentError: a class replaces a suite's test without a reason. pytest reports it when it collects the class.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in _suite_tests(cls):
            owner = next(base for base in cls.__mro__ if name in vars(base))
            if not _is_suite(owner) and not getattr(vars(owner)[name], _REASON, ""):
                raise ArgumentError(
                    f"{owner.__module__}.{owner.__qualname__} replaces {name} of a conformance suite; decorate it with "
                    f'@overrides("why your component is right not to pass it"), or remove it'
                )


def overrides(reason: str) -> Callable[[_Function], _Function]:
    """Marks a method that replaces a test of a suite, and states the reason.

    Args:
        reason: a sentence for the reader of the tests.

    Raises:
        ArgumentError: the reason is empty.

    Example:
        >>> class Relaxed(Suite):
        ...     @overrides("this component has no state")
        ...     def test_state(self): ...
    """
    if not reason.strip():
        raise ArgumentError("overrides(reason) needs a reason")

    def mark(function: _Function) -> _Function:
        setattr(function, _REASON, reason)
        return function

    return mark


def _suite_tests(cls: type) -> list[str]:
    return sorted({name for base in cls.__mro__ if _is_suite(base) for name in vars(base) if name.startswith("test_")})


def _is_suite(cls: type) -> bool:
    return cls.__module__.startswith(f"{_HOME}.") and inspect.isclass(cls)
