"""Decides which checkpoints are kept."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estimator_core.config import KeepBest
from estimator_core.errors import ArgumentError

_log = logging.getLogger("estimator_core.checkpoint")

#: The metrics of evaluations by global step, as `ec.read_eval_metrics` returns them.
EvalResults = Mapping[int, Mapping[str, Any]]


def no_results() -> EvalResults:
    """Returns no results, as if nothing had been evaluated."""
    return {}


def best_steps(rule: KeepBest, steps: Sequence[int], results: EvalResults) -> set[int]:
    """Returns the best of these steps.

    Steps without a result, or with NaN, are ignored. Of equal steps, the older one is better.

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


@functools.cache  # once for each model_dir
def _tell_of_no_best(model_dir: str, rule: KeepBest, known: tuple[str, ...]) -> None:
    where = f"the evaluation {rule.evaluation!r}" if rule.evaluation else "the evaluation without a name"
    has = f"It has {', '.join(known)}" if known else "It has no results so far; KeepBest(evaluation=...) names another"
    _log.warning(
        "Checkpoints of %s are deleted, and none is kept as the best: %s has no %r. %s.",
        model_dir,
        where,
        rule.metric,
        has,
    )


@dataclass(frozen=True, kw_only=True)
class Retention:
    """The rules that keep checkpoints. Any checkpoint that no rule keeps is deleted after a save.

    Args:
        keep_max: the number of newest checkpoints to keep. None or 0 keeps all.
        keep_every_n_hours: the length n of periods in hours. The first checkpoint of each period is kept too, except in
            the first period. Periods count from the first save of the run. None disables the rule.
        keep_best: the rule that also keeps the best checkpoints by a metric.
        results: a function that returns the results recorded so far, for `keep_best`. It is called after each save.
        model_dir: the model_dir that messages name.
    """

    keep_max: int | None = 5
    keep_every_n_hours: float | None = None
    keep_best: KeepBest | None = None
    results: Callable[[], EvalResults] = no_results
    model_dir: str = "a run"

    def __post_init__(self) -> None:
        if self.keep_max is not None and self.keep_max < 0:
            raise ArgumentError(f"`keep_max` must not be negative, got {self.keep_max}. None or 0 keeps everything.")
        if self.keep_every_n_hours is not None and not self.keep_every_n_hours > 0:
            raise ArgumentError(
                f"`keep_every_n_hours` must be positive, got {self.keep_every_n_hours}. None switches it off."
            )

    def superfluous(self, hours: Mapping[int, float]) -> list[int]:
        """Returns the steps to delete, oldest first.

        Args:
            hours: the hours from the first save of the run to each checkpoint, by step.

        Example:
            >>> Retention(keep_max=1, keep_every_n_hours=2).superfluous({10: 0.0, 20: 1.0, 30: 2.5, 40: 3.5, 50: 3.9})
            [10, 20, 40]
        """
        if not self.keep_max:
            return []
        steps = sorted(hours)
        kept = set(steps[-self.keep_max :]) | self._hourly(hours)
        if self.keep_best is not None:
            results = self.results()
            kept |= best_steps(self.keep_best, steps, results)
            known = {name for metrics in results.values() for name in metrics}
            if self.keep_best.metric not in known and not kept.issuperset(steps):
                _tell_of_no_best(self.model_dir, self.keep_best, tuple(sorted(known)))
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
