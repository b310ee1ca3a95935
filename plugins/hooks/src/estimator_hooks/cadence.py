"""The check of the steps between two actions of a hook."""

from __future__ import annotations

from estimator_core.errors import ArgumentError
from estimator_core.hooks import Hook


def whole_steps(hook: Hook, every_n_steps: float) -> int:
    """Returns the value of the argument `every_n_steps` of a hook.

    Raises:
        ArgumentError: it is not a whole number, or not positive.

    Example:
        >>> whole_steps(Hook(), 1e3)
        1000
    """
    if not every_n_steps >= 1 or every_n_steps % 1:
        raise ArgumentError(
            f"{type(hook).__name__}: every_n_steps must be at least 1, and a whole number, given: {every_n_steps}."
        )
    return int(every_n_steps)
