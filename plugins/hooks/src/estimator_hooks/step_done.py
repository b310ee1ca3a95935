"""Waits for a step, in any mode."""

from __future__ import annotations

from estimator_core.hooks import StepOutputs


def wait_for_step(out: StepOutputs) -> None:
    """Waits until a step is done, because a dispatch returns earlier.

    It reads the loss, which is small, or the first output of a prediction, which has no loss.

    Args:
        out: the outputs of the step.
    """
    names = list(out)
    if names:
        _ = out["loss" if "loss" in names else names[0]]
