"""Faults at a chosen place: in a method of a hook, or in an input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from estimator_core.hooks import Hook
from estimator_core.inputs import open_input

_METHODS = ("begin", "after_create", "before_step", "after_step", "end", "state")


class InjectedError(RuntimeError):
    """The requested fault."""


class FaultInjector(Hook):
    """A hook that raises in one of its methods.

    Args:
        method: the method that raises: begin, after_create, before_step, after_step, end or state.
        step: the first global step at which `before_step` or `after_step` raises the error.

    Example:
        >>> FaultInjector("after_step", step=3).next_step(0)
        3
    """

    def __init__(self, method: str, *, step: int = 1) -> None:
        if method not in _METHODS:
            raise ValueError(f"method is {method!r}; it must be one of {', '.join(_METHODS)}")
        self.method = method
        self.step = step
        self.raised = False

    def next_step(self, step: int) -> int:
        """Returns every step from `self.step` on."""
        return max(step + 1, self.step)

    def begin(self, run: Any) -> None:
        """Raises the error if it is due here."""
        self._strike("begin")

    def after_create(self, run: Any) -> None:
        """Raises the error if it is due here."""
        self._strike("after_create")

    def before_step(self, run: Any, step: int) -> None:
        """Raises the error if it is due here."""
        self._strike("before_step")

    def after_step(self, run: Any, step: int, out: Any) -> None:
        """Raises the error if it is due here."""
        self._strike("after_step")

    def end(self, run: Any) -> None:
        """Raises the error if it is due here."""
        self._strike("end")

    def state(self) -> dict[str, Any]:
        """Raises the error if it is due here."""
        self._strike("state")
        return {}

    def _strike(self, method: str) -> None:
        if method == self.method:
            self.raised = True
            raise InjectedError(f"fault injected in {method}")


class Unreadable:
    """An output that the device failed to compute, so that reading it raises. Pass it to `drive` in `outputs`.

    Attributes:
        read: whether it was read.

    Example:
        >>> import numpy as np
        >>> value = Unreadable()
        >>> try:
        ...     np.asarray(value)
        ... except InjectedError as error:
        ...     print(error, value.read)
        the device failed True
    """

    def __init__(self) -> None:
        self.read = False

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Raises the failure."""
        raise self._failure()

    def __getitem__(self, index: Any) -> Any:
        """Raises the failure."""
        raise self._failure()

    def _failure(self) -> InjectedError:
        self.read = True
        return InjectedError("the device failed")


def failing_input_fn(input_fn: Callable[..., Any], *, at_batch: int) -> Callable[..., Any]:
    """Returns an input_fn with the batches of another, which raises instead of batch number `at_batch` (from 1).

    Example:
        >>> import numpy as np
        >>> broken = failing_input_fn(lambda: [{"x": np.ones(1)}] * 3, at_batch=2)
        >>> batches = iter(broken("train"))
        >>> sorted(next(batches))
        ['x']
    """

    def failing(mode: str) -> Iterator[Any]:
        for number, batch in enumerate(open_input(input_fn, mode=mode), start=1):
            if number == at_batch:
                raise InjectedError(f"fault injected at batch {number}")
            yield batch.features if batch.labels is None else (batch.features, batch.labels)

    return failing
