"""`host_call`: a function on the host that receives tensors of the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.builtin_hooks import point_step, whole_steps
from estimator_core.errors import HookError
from estimator_core.hooks import Hook, Run, StepOutputs

_PREFIX = "host_call"


def named_tensors(tensors: Any) -> dict[str, str] | list[str]:
    """Names the tensors of a host_call, so that a hook can request them. Call it inside model_fn.

    Args:
        tensors: the arrays, in a list or a dict.

    Returns:
        The names, in the same form.
    """
    if isinstance(tensors, Mapping):
        for name, value in tensors.items():
            ec.tensor(f"{_PREFIX}/{name}", value)
        return {name: f"{_PREFIX}/{name}" for name in tensors}
    for index, value in enumerate(tensors):
        ec.tensor(f"{_PREFIX}/{index}", value)
    return [f"{_PREFIX}/{index}" for index in range(len(tensors))]


class HostCallHook(Hook):
    """Calls a function with tensors of the step, and writes the numbers that it returns to the event file.

    Args:
        function: the function. It receives numpy arrays, by position or by name.
        names: the names of the outputs: a list, or a dict from argument to output.
        every_n_steps: the steps between two calls. The first step is one of them.

    Raises:
        ArgumentError, ArgumentTypeError: `every_n_steps` is not a positive whole number.
        HookError: the function returns something other than None or numbers by name; raised in the run.
    """

    def __init__(
        self, function: Callable[..., Any], names: Mapping[str, str] | Sequence[str], *, every_n_steps: int = 1
    ) -> None:
        self._function, self._names = function, names
        self._every = whole_steps(self, "every_n_steps", every_n_steps)

    def begin(self, run: Run) -> None:
        """Requests the outputs."""
        for name in self._names.values() if isinstance(self._names, Mapping) else self._names:
            run.fetch(name)

    def next_step(self, step: int) -> int | None:
        """Returns the next of the steps 1, 1 + n, 1 + 2n, ..."""
        return step + 1 + (-step) % self._every

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Calls the function."""
        if isinstance(self._names, Mapping):
            result = self._function(**{name: np.asarray(out[output]) for name, output in self._names.items()})
        else:
            result = self._function(*(np.asarray(out[output]) for output in self._names))
        if result is None:
            return
        if not isinstance(result, Mapping):
            raise HookError(f"host_call must return None or a dict of numbers, given: {result!r}.")
        for tag, value in result.items():
            run.summaries.scalar(tag, float(value), point_step(run, step))
