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


def evaluate_continuously(
    estimator: Any,
    specs: Sequence[EvalSpec],
    *,
    max_steps: int | None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Evaluations:
    """The evaluator role: waits, evaluates each new checkpoint and exports, until max_steps has been evaluated.

    Checkpoints that are replaced by newer ones within `throttle_secs` are passed over, the last one never.
    """
    evaluations = Evaluations(estimator, specs)
    sleep(max(spec.start_delay_secs for spec in specs))
    throttle = max(spec.throttle_secs for spec in specs)
    for path, step in new_checkpoints(
        estimator, stop=lambda step: max_steps is not None and step >= max_steps, sleep=sleep
    ):
        began = clock()
        final = max_steps is not None and step >= max_steps
        for spec in specs:
            evaluations.evaluate_now(spec, path)
            evaluations.export(spec, path, final=final)
        if not final:
            sleep(max(0.0, throttle - (clock() - began)))
    evaluations.wait()
    return evaluations
