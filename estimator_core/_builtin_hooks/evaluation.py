"""Evaluates a training run between its checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from estimator_core.hooks import Hook, Run, SavedCheckpoint, StepOutputs


class RunEvaluations(Protocol):
    """The evaluations of a training run, on its live state; only its Checkpointer calls them."""

    def begin(self, run: Run) -> None:
        """Called when training begins."""
        ...

    def evaluate(self, run: Run) -> None:
        """Runs the evaluations that belong to a checkpoint, before its save."""
        ...

    def evaluate_between(self, run: Run) -> None:
        """Runs the evaluations that belong to the current step and not to a checkpoint."""
        ...

    def after_save(self, run: Run, step: int, checkpoint: SavedCheckpoint) -> bool | None:
        """Called after a save and its listeners."""
        ...

    def resume(self, run: Run) -> None:
        """Called when a killed run continues from a checkpoint, before the first step."""
        ...

    def next_step(self, step: int) -> int | None:
        """The next step that has an evaluation of its own, without a checkpoint."""
        ...

    def finish(self) -> None:
        """Called after the end of all hooks, before the end of the call is recorded. A second call does nothing."""
        ...


class EvaluationHook(Hook):
    """Runs the evaluations that belong to a step and not to a checkpoint.

    Args:
        next_step: returns the step of the next evaluation.
        evaluate: runs the evaluations of the current step.

    Example:
        >>> EvaluationHook(lambda step: (step // 100 + 1) * 100, lambda run: None).next_step(250)
        300
    """

    name = "EvaluationHook"

    def __init__(self, next_step: Callable[[int], int | None], evaluate: Callable[[Run], None]) -> None:
        self._next_step = next_step
        self._evaluate = evaluate

    def next_step(self, step: int) -> int | None:
        """The step of the next evaluation."""
        return self._next_step(step)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Evaluates, except at the end of the run: the last checkpoint is evaluated anyway."""
        if run.stop_reason is None and run.step != run.last_step:
            self._evaluate(run)
