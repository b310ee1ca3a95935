"""Which checkpoints to keep: the newest, one every n hours, the best by a metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estimator_core.config import KeepBest
from estimator_core.errors import ArgumentError

#: Metrics of evaluations by global step, as `ec.read_eval_metrics` returns them.
EvalResults = Mapping[int, Mapping[str, Any]]


def no_results() -> EvalResults:
    """Returns no results, as if nothing has been evaluated."""
    return {}


def best_steps(rule: KeepBest, steps: Sequence[int], results: EvalResults) -> set[int]:
    """The best of these steps. Steps without a result, or with NaN, do not count. Of equal steps the older is better.

    Example:
        >>> best_steps(
        ...     KeepBest(metric="accuracy", mode="max"), [10, 20], {10: {"accuracy": 0.7}, 20: {"accuracy": 0.6}}
        ... )
        {10}
    """
    values = {step: float(results[step][rule.metric]) for step in steps if rule.metric in results.get(step, {})}
    ranked = sorted(
        (value if rule.mode == "min" else -value, step) for step, value in values.items() if not math.isnan(value)
    )
    return {step for _, step in ranked[: rule.n]}


@dataclass(frozen=True, kw_only=True)
class Retention:
    """What to keep. Everything that no rule keeps is deleted after a save, however much that is.

    Args:
        keep_max: how many of the newest checkpoints are kept; None or 0 keeps all.
        keep_every_n_hours: also keeps the first checkpoint of each period of n hours, except the very first period; the
            periods count from the run's first save. None: none.
        keep_best: also keeps the best by a metric.
        results: returns the results recorded so far, for `keep_best`; called after each save.
    """

    keep_max: int | None = 5
    keep_every_n_hours: float | None = None
    keep_best: KeepBest | None = None
    results: Callable[[], EvalResults] = no_results

    def __post_init__(self) -> None:
        if self.keep_max is not None and self.keep_max < 0:
            raise ArgumentError(f"`keep_max` must not be negative, got {self.keep_max}. None or 0 keeps everything.")
        if self.keep_every_n_hours is not None and not self.keep_every_n_hours > 0:
            raise ArgumentError(
                f"`keep_every_n_hours` must be positive, got {self.keep_every_n_hours}. None switches it off."
            )

    def superfluous(self, hours: Mapping[int, float]) -> list[int]:
        """The steps to delete, oldest first.

        Args:
            hours: step -> hours from the first save of the run to this one, for all checkpoints.

        Example:
            >>> Retention(keep_max=1, keep_every_n_hours=2).superfluous({10: 0.0, 20: 1.0, 30: 2.5, 40: 3.5, 50: 3.9})
            [10, 20, 40]
        """
        if not self.keep_max:
            return []
        steps = sorted(hours)
        kept = set(steps[-self.keep_max :]) | self._hourly(hours)
        if self.keep_best is not None:
            kept |= best_steps(self.keep_best, steps, self.results())
        return [step for step in steps if step not in kept]

    def _hourly(self, hours: Mapping[int, float]) -> set[int]:
        if self.keep_every_n_hours is None:
            return set()
        first_of_period: dict[int, int] = {}
        for step in sorted(hours):
            period = math.floor(hours[step] / self.keep_every_n_hours)
            if period >= 1:
                first_of_period.setdefault(period, step)
        return set(first_of_period.values())
