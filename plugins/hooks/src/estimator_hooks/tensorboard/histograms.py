"""The weights of a model over its steps, for TensorBoard's pages HISTOGRAMS and DISTRIBUTIONS."""

from __future__ import annotations

import re

from estimator_core.builtin_hooks import point_step, whole_steps
from estimator_core.errors import ArgumentError
from estimator_core.hooks import Hook, Run, StepOutputs

PREFIX = "variables/"


class VariableHistogramsHook(Hook):
    """Writes the distribution of each trained variable, at the first step and then every `every_n_steps`.

    TensorBoard draws the steps of a variable as a mesh. Each histogram copies the variables to the host.

    Args:
        every_n_steps: steps between two histograms.
        variables: a regular expression that matches the whole path of the variables to write.

    Raises:
        ArgumentError: `every_n_steps` is not positive, or `variables` is not a regular expression.

    Example:
        >>> hook = VariableHistogramsHook(every_n_steps=100, variables=".*kernel")
        >>> hook.next_step(0), hook.next_step(1), hook.next_step(101)
        (1, 101, 201)
    """

    def __init__(self, every_n_steps: int = 100, variables: str = ".*") -> None:
        try:
            self._wanted = re.compile(variables)
        except re.error as error:
            raise ArgumentError(
                f"VariableHistogramsHook: variables is not a regular expression ({error}), given: {variables!r}"
            ) from error
        self._every = whole_steps(self, "every_n_steps", every_n_steps)

    def next_step(self, step: int) -> int:
        """Returns the next of the steps 1, 1 + n, 1 + 2n, ..., like the summaries of the core."""
        return 1 if step < 1 else step + self._every - (step - 1) % self._every

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Writes a histogram for each variable."""
        for path, values in run.variables().items():
            if self._wanted.fullmatch(path):
                run.summaries.histogram(PREFIX + path, values, point_step(run, step))
