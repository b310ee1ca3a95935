"""Evaluates every new checkpoint in a separate process."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from estimator_core._checkpoint.catalog import all_checkpoints, checkpoint_step
from estimator_core._checkpoint.lock import LOCK_FILE
from estimator_core._evaluations import Evaluations
from estimator_core._loop.run_record import FILE, ended_step
from estimator_core.specs import EvalSpec

_log = logging.getLogger("estimator_core")
_POLL_SECONDS = 1.0
#: The largest number of seconds to the first step of a trainer that was started together with an evaluator.
_START_SECS = 60.0
#: After this number of seconds without a heartbeat, a lock belongs to a run that was killed and not restarted.
_ABANDONED_SECS = 600.0


def new_checkpoints(
    estimator: Any,
    *,
    stop: Callable[[int], bool],
    sleep: Callable[[float], None] = time.sleep,
    ended: Callable[[], bool] = lambda: False,
    every: bool = False,
) -> Any:
    """Yields `(path, step)` of each new newest checkpoint (`every`: of each new one, in order), until `stop(step)` or
    `ended()` returns that no more will follow.
    """
    seen: str | None = None
    while True:
        last = ended()  # called before the look-up, because the last checkpoint exists when training ends
        newest = estimator.latest_checkpoint()
        if every and newest is not None:
            newest = next((path for path in all_checkpoints(estimator.model_dir) if _is_newer(path, seen)), newest)
        if newest is not None and newest != seen:
            seen = newest
            step = checkpoint_step(newest)
            yield newest, step
            if stop(step):
                return
        elif last:
            return
        else:
            sleep(_POLL_SECONDS)


def _is_newer(path: str, seen: str | None) -> bool:
    return seen is None or checkpoint_step(path) > checkpoint_step(seen)


class _TrainingEnded:
    """Returns whether training has ended, for any reason except an interruption, after which it continues.

    The end of an earlier call counts only after a trainer that was started together with the evaluator has had time to
    record that training continues.
    """

    def __init__(self, model_dir: str) -> None:
        self._model_dir, self._began = Path(model_dir), time.time()

    def __call__(self) -> bool:
        noted = self._model_dir / FILE
        if ended_step(self._model_dir) is not None:
            return noted.stat().st_mtime >= self._began or time.time() - self._began > _START_SECS
        lock = self._model_dir / LOCK_FILE
        try:
            return time.time() - lock.stat().st_mtime > _ABANDONED_SECS  # killed and not restarted
        except OSError:
            return False


def evaluate_continuously(
    estimator: Any,
    specs: Sequence[EvalSpec],
    *,
    max_steps: int | None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Evaluations:
    """Performs the evaluator role: waits, evaluates each new checkpoint and exports, until max_steps has been evaluated
    or training has ended earlier.

    A spec with `throttle_secs=0` evaluates every checkpoint. Any other spec evaluates the newest one, at most once in
    its `throttle_secs`, and the last one.
    """
    evaluations = Evaluations(estimator, specs)
    last: str | None = None
    every = any(spec.throttle_secs == 0 for spec in specs)

    def lacks(spec: EvalSpec, path: str) -> bool:
        return evaluations.metrics.get(spec.name, {}).get("global_step") != checkpoint_step(path)

    sleep(max(spec.start_delay_secs for spec in specs))
    due = {spec.name: 0.0 for spec in specs}
    for path, step in new_checkpoints(
        estimator,
        stop=lambda step: max_steps is not None and step >= max_steps,
        sleep=sleep,
        ended=_TrainingEnded(estimator.model_dir),
        every=every,
    ):
        began = max(clock(), min(due.values()))  # a sleep may end a rounding error too early
        final = max_steps is not None and step >= max_steps
        newest = (estimator.latest_checkpoint() if every and not final else None) or path
        asking = [spec for spec in specs if final or due[spec.name] <= began]
        for where in dict.fromkeys((path, newest)):
            of = [spec for spec in asking if (newest if spec.throttle_secs else path) == where and lacks(spec, where)]
            if of and evaluations.of_checkpoint(where, final=final, specs=of):
                last = where
                due |= {spec.name: began + spec.throttle_secs for spec in of}
        if not final:
            sleep(max(0.0, min(due.values()) - clock()))
    if last is not None:
        evaluations.of_checkpoint(last, final=True, specs=[spec for spec in specs if lacks(spec, last)])
        evaluations.export_final(last)
    evaluations.wait()
    return evaluations
