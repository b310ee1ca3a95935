"""The prediction loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from estimator_core._loop.batches import Batches
from estimator_core._loop.dispatch import Dispatch
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.predictions import Predictions
from estimator_core._loop.run import LoopRun

#: Dispatches that the device works on while the caller has the predictions before them.
AHEAD = 2


def predict_loop(
    run: LoopRun,
    batches: Batches,
    program: Predictions,
    hooks: HookSchedule,
    on_host: Callable[[Dispatch, Any], Iterator[Any]],
) -> Iterator[Any]:
    """Predictions of each batch on the host, in order; the device works up to two dispatches ahead.

    Args:
        run: what the hooks see.
        batches: several at a time where no hook wants each by itself.
        program: what the device computes of one dispatch.
        hooks: which have been created.
        on_host: the predictions of the batches of a dispatch, as the caller gets them.
    """
    waiting: deque[tuple[Dispatch, Any]] = deque()
    while (dispatch := batches.draw(hooks.room())) is not None:
        hooks.before(dispatch)
        predictions = program.predict(dispatch)
        run.advance(dispatch)
        hooks.after(dispatch, predictions)
        waiting.append((dispatch, predictions))
        if len(waiting) > AHEAD:
            with batches.away():  # the caller's time is not ours
                yield from on_host(*waiting.popleft())
        if hooks.stops():
            break
        batches.tune(program, hooks.room())
    for computed in waiting:
        with batches.away():
            yield from on_host(*computed)
    batches.raise_error()  # all predictions before a broken row have been returned
