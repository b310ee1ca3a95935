"""Reads the recorded values of one metric, and raises clear errors if there are none."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator_core.errors import HookError, did_you_mean
from estimator_core.summaries import read_eval_metrics

_log = logging.getLogger("estimator_hooks")


class EvaluatedMetric:
    """Reads one metric from `metrics.jsonl`, and remembers what it has read.

    Args:
        eval_dir: the directory of the evaluation.
        metric: the name of the metric.
    """

    def __init__(self, eval_dir: str, metric: str) -> None:
        self._eval_dir = Path(eval_dir)
        self._metric = metric
        self._warned = False
        self.values: dict[int, float] = {}

    def read(self, step: int) -> dict[int, float]:
        """Returns the values by global step, of evaluations up to `step`.

        Later evaluations belong to a run that went beyond the checkpoint that this run resumed from. They will run
        again.

        Raises:
            HookError: the newest evaluation does not have the metric, or the metric is not a number.
        """
        records = {at: metrics for at, metrics in read_eval_metrics(self._eval_dir).items() if at <= step}
        if not records:
            self._warn_about_other_evaluations()
        elif self._metric not in records[max(records)]:
            raise HookError(self._unknown(max(records), records[max(records)]))
        self.values = {at: value for at, value in self.values.items() if at <= step}
        for at, metrics in records.items():
            if self._metric in metrics:
                self.values[at] = self._number(at, metrics[self._metric])
        return dict(self.values)

    def of_checkpoints(self, values: Mapping[int, float]) -> dict[int, float]:
        """Returns the values whose weights are in a checkpoint, because other weights cannot be restored."""
        between = set(read_eval_metrics(self._eval_dir)) - set(read_eval_metrics(self._eval_dir, with_checkpoint=True))
        return {at: value for at, value in values.items() if at not in between}

    def _number(self, step: int, value: Any) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        raise HookError(
            f"Early stopping: metric {self._metric!r} of the evaluation at step {step} in {self._eval_dir} is "
            f"{value!r}, not a single number. Give the name of a scalar metric."
        )

    def _unknown(self, step: int, metrics: Mapping[str, Any]) -> str:
        return (
            f"Early stopping: the evaluation at step {step} in {self._eval_dir} has no metric {self._metric!r}."
            f"{did_you_mean(self._metric, metrics)} It has: {sorted(metrics)}. Return the metric in eval_metric_ops, "
            "or use one of these names."
        )

    def _warn_about_other_evaluations(self) -> None:
        others = [
            path.parent.name
            for path in sorted(self._eval_dir.parent.glob("eval*/metrics.jsonl"))
            # Another evaluation may run first, so that one record elsewhere does not mean that this directory is wrong.
            if path.parent != self._eval_dir and len(read_eval_metrics(path.parent)) > 1
        ]
        if others and not self._warned:
            self._warned = True
            _log.warning(
                "Early stopping reads %s, which has no recorded evaluation, but evaluations exist in %s. For "
                "EvalSpec(name='x'), pass eval_name='x' to the hook.",
                self._eval_dir,
                ", ".join(others),
            )
