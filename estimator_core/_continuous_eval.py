"""Evaluates every new checkpoint in a separate process."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from estimator_core._checkpoint.catalog import all_checkpoints, checkpoint_step
from estimator_core._checkpoint.lock import LOCK_FILE
from estimator_core._evaluations import Evaluations
from estimator_core._loop.run_record import FILE, ended_step
from estimator_core._summaries import read_eval_metrics
from estimator_core.specs import EvalSpec

_log = logging.getLogger("estimator_core")
_POLL_SECONDS = 1.0
#: The largest number of seconds to the first step of a trainer that was started together with an evaluator.
_START_SECS = 60.0
#: After this number of seconds without a heartbeat, a lock belongs to a run that was killed and not restarted.
_ABANDONED_SECS = 600.0


def new_checkpoints(
    estimator: Any, *, stop: Callable[[int], bool], with_run: bool = False, sleep: Callable[[float], None] = time.sleep
) -> Any:
    """Yields `(path, step)` of each new newest checkpoint, until `stop(step)`.

    With `with_run`, it also ends after the last checkpoint of a training that has ended earlier.
    """
    seen: str | None = None
    has_ended = _TrainingEnded(estimator.model_dir)
    while True:
        ended = with_run and has_ended()  # before the look-up, as in `evaluate_continuously`
        newest = estimator.latest_checkpoint()
        if newest is None or newest == seen:
            if ended:
                return
            sleep(_POLL_SECONDS)
            continue
        seen = newest
        step = checkpoint_step(newest)
        yield newest, step
        if stop(step):
            return


class _TrainingEnded:
    """Returns whether training has ended, for any reason except an interruption, after which it continues.

    The end of an earlier call counts only after a trainer that was started together with the evaluator has had time to
    record that training continues.
    """

    def __init__(self, model_dir: str) -> None:
        self._model_dir, self._began = Path(model_dir), time.time()

    def __call__(self) -> bool:
        if ended_step(self._model_dir) is not None:
            noted = (self._model_dir / FILE).stat().st_mtime
            return noted >= self._began or time.time() - self._began > _START_SECS
        lock = self._model_dir / LOCK_FILE
        try:
            return time.time() - lock.stat().st_mtime > _ABANDONED_SECS  # killed and not restarted
        except OSError:
            return False


def _next_step(spec: EvalSpec, steps: Collection[int], seen: int) -> int:
    """Returns the step that a spec evaluates after the step `seen`. It is `seen` if there is no other."""
    later = [step for step in steps if step > seen] if spec.throttle_secs == 0 else []
    return min(later, default=max(steps, default=seen))


def _seen_before(estimator: Any, spec: EvalSpec) -> int:
    """Returns the step before the last of the oldest checkpoints that have a result of the spec; -1 without one.

    A restarted evaluator begins with this checkpoint, because a kill may have prevented its exports.
    """
    results = read_eval_metrics(estimator.eval_dir(spec.name), with_checkpoint=True)
    steps = sorted(map(checkpoint_step, all_checkpoints(estimator.model_dir)))
    return max(itertools.takewhile(results.__contains__, steps), default=0) - 1


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

    A spec with `throttle_secs=0` evaluates every checkpoint. After a restart of the evaluator, it continues with the
    last one that it evaluated, so that no export of an older checkpoint follows that of a newer one. Any other spec
    evaluates the newest one, at most once in its `throttle_secs`, and the last one. A checkpoint that is deleted before
    its evaluation is passed over.
    """
    evaluations = Evaluations(estimator, specs)
    sleep(max(spec.start_delay_secs for spec in specs))
    has_ended = _TrainingEnded(estimator.model_dir)
    due = {spec.name: 0.0 for spec in specs}
    estimator.latest_checkpoint()  # refreshes the model_dir
    # The step of the last checkpoint that each spec asked for.
    seen = {spec.name: _seen_before(estimator, spec) for spec in specs}
    while True:
        ended = has_ended()  # called before the look-up, because the last checkpoint exists when training ends
        began = clock()
        newest = estimator.latest_checkpoint()  # also refreshes the model_dir
        paths = {checkpoint_step(path): path for path in (*all_checkpoints(estimator.model_dir), newest) if path}
        final = max_steps is not None and max(paths, default=-1) >= max_steps
        wanted = {spec.name: _next_step(spec, paths, seen[spec.name]) for spec in specs}
        if wanted == seen and (final or ended):
            break
        asking: dict[int, list[EvalSpec]] = {}  # by the step that they ask for
        for spec in specs:
            if wanted[spec.name] != seen[spec.name] and (final or ended or due[spec.name] <= began):
                asking.setdefault(wanted[spec.name], []).append(spec)
        for step, those in asking.items():
            seen |= {spec.name: step for spec in those}
            if evaluations.of_checkpoint(paths[step], final=final and step == max(paths), specs=those):
                due |= {spec.name: began + spec.throttle_secs for spec in those}
        if not final:
            sleep(max(0.0 if asking else _POLL_SECONDS, min(due.values()) - clock()))
    evaluations.export_final()
    evaluations.wait()
    return evaluations
