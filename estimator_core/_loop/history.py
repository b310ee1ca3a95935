"""What happened: an Estimator's record of its training and evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class History:
    """Rows of values, oldest first; `pandas.DataFrame(history.train)` is a table.

    Attributes:
        train: `{"step", "loss", ...}` at every `log_step_count_steps`, and at the last step.
        evaluations: `{"name", "global_step", metric: value, ...}` of every evaluation.
        stop_reason: why the last `train` call ended.

    Example:
        >>> history = History()
        >>> history.add_evaluation(None, {"global_step": 10, "accuracy": 0.9})
        >>> history.evaluations
        [{'name': None, 'global_step': 10, 'accuracy': 0.9}]
    """

    train: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    evaluations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    stop_reason: str | None = None

    def add_evaluation(self, name: str | None, metrics: Mapping[str, Any]) -> None:
        """Adds one evaluation."""
        self.evaluations.append({"name": name, **metrics})
