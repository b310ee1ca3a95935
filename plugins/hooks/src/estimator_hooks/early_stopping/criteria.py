"""The arithmetic of early stopping: pure functions of one metric's values by global step."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from estimator_core.builtin_hooks import whole_steps

Better = Literal["higher", "lower"]
_IS_BETTER: dict[Better, Callable[[float, float], bool]] = {"higher": operator.gt, "lower": operator.lt}


@dataclass(frozen=True, kw_only=True)
class ThresholdCrossed:
    """Stops when the metric is better than a threshold in any evaluation from `min_steps` on.

    Example:
        >>> rule = ThresholdCrossed(better="lower", threshold=0.5, min_steps=0)
        >>> rule.reason("loss", {1000: 0.8, 3000: 0.4})
        'loss = 0.4 at step 3000, lower than 0.5'
    """

    better: Better
    threshold: float
    min_steps: int

    def __post_init__(self) -> None:
        whole_steps(self, "min_steps", self.min_steps, least=0)

    def reason(self, metric: str, values: Mapping[int, float]) -> str | None:
        """Returns the reason to stop, or None."""
        for step in sorted(values):
            if step >= self.min_steps and _IS_BETTER[self.better](values[step], self.threshold):
                return f"{metric} = {values[step]:.6g} at step {step}, {self.better} than {self.threshold:g}"
        return None


@dataclass(frozen=True, kw_only=True)
class NoImprovement:
    """Stops when the best evaluation from `min_steps` on is at least `max_steps` steps older than a later one.

    Example:
        >>> rule = NoImprovement(better="lower", max_steps=500, min_steps=0)
        >>> rule.reason("loss", {3000: 0.4, 3500: 0.41})
        'no lower loss than 0.4 of step 3000 up to step 3500'
    """

    better: Better
    max_steps: int
    min_steps: int

    def __post_init__(self) -> None:
        whole_steps(self, "min_steps", self.min_steps, least=0)

    def reason(self, metric: str, values: Mapping[int, float]) -> str | None:
        """Returns the reason to stop, or None."""
        best: int | None = None
        for step in sorted(values):
            if step < self.min_steps:
                continue
            if best is None or is_better(self.better, values[step], values[best]):
                best = step
            if step - best >= self.max_steps:
                return f"no {self.better} {metric} than {values[best]:.6g} of step {best} up to step {step}"
        return None


Rule = ThresholdCrossed | NoImprovement


def is_better(better: Better, value: float, than: float) -> bool:
    """Returns whether a value is better than another. Any number is better than NaN."""
    if math.isnan(than):
        return not math.isnan(value)
    return _IS_BETTER[better](value, than)


def best_step(better: Better, values: Mapping[int, float]) -> int | None:
    """Returns the step of the best value (the earliest of equal values), or None without values.

    Example:
        >>> best_step("lower", {100: 2.0, 200: 1.0, 300: 1.0})
        200
    """
    best: int | None = None
    for step in sorted(values):
        if not math.isnan(values[step]) and (best is None or is_better(better, values[step], values[best])):
            best = step
    return best
