"""The components of acme-roles."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from estimator_core.export import CloseOutputs
from estimator_core.hooks import CheckpointPolicy, Hook, Run, StepOutputs


class Doubling(CheckpointPolicy):
    """Saves at powers of two, but not at the start or at the end."""

    def at_start(self, run: Run) -> bool:
        """Returns that no checkpoint is saved at the start."""
        return False

    def next_step(self, step: int) -> int:
        """Returns the next power of two."""
        return 2 ** step.bit_length()

    def at_end(self, run: Run) -> bool:
        """Returns that no checkpoint is saved at the end."""
        return False


class Log(Hook):
    """Prints step and loss.

    Args:
        every_n_iter: the number of steps between two lines.
    """

    def __init__(self, every_n_iter: int) -> None:
        self.every = every_n_iter

    def next_step(self, step: int) -> int:
        return step - step % self.every + self.every

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        print(f"acme: step {step}, loss {float(out['loss']):.3g}", flush=True)


class Counting:
    """Counts what it compares, and accepts what is close."""

    compared: ClassVar[list[str]] = []

    def difference(self, expected: np.ndarray, found: np.ndarray) -> str | None:
        """Returns the result of the core's own check."""
        self.compared.append(str(expected.dtype))
        return CloseOutputs().difference(expected, found)


class Strict:
    """Accepts no export."""

    def difference(self, expected: np.ndarray, found: np.ndarray) -> str | None:
        """Returns a refusal."""
        return "is refused on principle."
