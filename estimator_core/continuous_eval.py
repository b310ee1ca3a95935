"""Evaluation in a process of its own: every checkpoint as it appears."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from estimator_core.evaluations import Evaluations
from estimator_core.specs import EvalSpec

_log = logging.getLogger("estimator_core")
_POLL_SECONDS = 1.0


def new_checkpoints(
    estimator: Any,
    *,
    stop: Callable[[int], bool],
    sleep: Callable[[float], None] = time.sleep,
    poll_secs: float = _POLL_SECONDS,
) -> Any:
    """Yields `(path, step)` of each new newest checkpoint until `stop(step)` says that no further one will come."""
    seen: str | None = None
    while True:
        newest = estimator.latest_checkpoint()
        if newest is not None and newest != seen:
            seen = newest
            step = int(newest.rpartition("/")[2])
            yield newest, step
            if stop(step):
                return
        else:
            sleep(poll_secs)


def evaluate_continuously(estimator: Any, specs: Sequence[EvalSpec], *, max_steps: int | None) -> Evaluations:
    """The evaluator role: waits, evaluates each new checkpoint and exports, until max_steps has been evaluated."""
    evaluations = Evaluations(estimator, specs)
    time.sleep(max(spec.start_delay_secs for spec in specs))
    for path, step in new_checkpoints(estimator, stop=lambda step: max_steps is not None and step >= max_steps):
        final = max_steps is not None and step >= max_steps
        for spec in specs:
            evaluations.evaluate_now(spec, path)
            evaluations.export(spec, path, final=final)
    evaluations.wait()
    return evaluations
