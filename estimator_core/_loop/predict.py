"""The prediction loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from estimator_core._loop.dispatch import Dispatch
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.predictions import Predictions
from estimator_core._loop.run import LoopRun
from estimator_core._loop.steps_per_dispatch import TunedBatches

#: The number of dispatches that the device computes ahead of the caller.
AHEAD = 2


def predict_loop(
    run: LoopRun,
    batches: TunedBatches,
    program: Predictions,
    hooks: HookSchedule,
    on_host: Callable[[Dispatch, Any], Iterator[Any]],
) -> Iterator[Any]:
    """Yields the predictions of each batch on the host, in order. The device works up to two dispatches ahead.

    Args:
        run: the run that hooks see.
        batches: the batches. Several are used at a time if no hook needs each batch separately.
        program: the function that the device computes for one dispatch.
        hooks: the hooks, after `after_create`.
        on_host: a function that converts the predictions of one dispatch to those that the caller receives.
    """
    waiting: deque[tuple[Dispatch, Any]] = deque()
    while (dispatch := batches.draw(hooks.room())) is not None:
        hooks.before(dispatch)
        predictions = program.predict(dispatch)
        run.advance(dispatch)
        hooks.after(dispatch, predictions)
        waiting.append((dispatch, predictions))
        if len(waiting) > AHEAD:
            with batches.away():  # so that the time of the caller does not count
                yield from on_host(*waiting.popleft())
        if hooks.stops():
            break
        batches.tune(program, hooks.room())
    for computed in waiting:
        with batches.away():
            yield from on_host(*computed)
    batches.raise_error()  # after all predictions before a broken row have been yielded
