"""A hook that ends the training once the loss is low enough."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_core.hooks import Hook, Run, StepOutputs


class AcmeHookHook(Hook):
    """Ends the training when the loss has been below a threshold `patience` times in a row.

    Args:
        threshold: the loss to get below.
        every: steps between two looks at the loss; reading it waits for the device.
        patience: how many looks in a row.
    """

    def __init__(self, threshold: float = 0.1, every: int = 5, patience: int = 2) -> None:
        self.threshold = threshold
        self.every = every
        self.patience = patience
        self.below = 0

    def next_step(self, step: int) -> int:
        return step - step % self.every + self.every

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        loss = float(out["loss"])
        self.below = self.below + 1 if loss < self.threshold else 0
        if self.below >= self.patience:
            run.request_stop(f"the loss was below {self.threshold} {self.patience} times, {loss:.3g} at last")

    def state(self) -> Mapping[str, Any]:
        return {"below": self.below}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.below = int(state["below"])
