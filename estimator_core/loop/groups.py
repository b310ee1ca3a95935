"""Several batches of an evaluation or of predictions in one dispatch: as asked, or once that has proved faster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

import jax

from estimator_core.loop.dispatch import Dispatch, Dispatcher, Stacking, shapes_of, single, stacked
from estimator_core.loop.steps_per_dispatch import CANDIDATE, SLOW_STEP_SECONDS, is_worth_it

_log = logging.getLogger("estimator_core")
#: A program that has run for so long is worth a trial, which compiles it once more.
_TRIAL_SECONDS = 0.5
#: Of the batches of one dispatch, and of what is computed from them: larger ones gain nothing, and cost memory.
_MOST_BYTES = 4 * 2**20


@dataclass
class GroupTrials:
    """What is known of one program.

    Attributes:
        seconds, batches: how long it has run on single batches, over all calls, and on how many; drawing them included.
        counts: the batches a dispatch, by shapes of the batches, where that has been tried.
    """

    seconds: float = 0.0
    batches: int = 0
    counts: dict[Any, int] = field(default_factory=dict[Any, int])


class Groups:
    """The batches of one call, drawn one by one or, from some moment on, several at a time.

    Args:
        first: the first batch, which comes by itself; None: the input is empty.
        source: iterator of the others.
        stack_arrays: see `Dispatcher`.
        asked: as in `RunConfig(batches_per_dispatch=...)`.
        trials: of the program; read and added to.

    Example:
        >>> import numpy as np
        >>> from estimator_core.inputs import open_input
        >>> source = open_input(lambda: [({"x": np.full((2, 1), n)}, None) for n in range(5)], mode="eval")
        >>> groups = Groups(next(source), source, np.stack, asked=3)
        >>> [groups.draw(room=10).steps for _ in range(3)]
        [1, 3, 1]
    """

    def __init__(
        self,
        first: Any,
        source: Iterator[Any],
        stack_arrays: Stacking,
        *,
        asked: int | Literal["auto"],
        trials: GroupTrials | None = None,
    ) -> None:
        self._dispatcher = Dispatcher(source, 1 if asked == "auto" else asked, stack_arrays)
        self._first = first
        self._trials = GroupTrials() if trials is None else trials
        self._open = asked == "auto"
        self._began: float | None = None

    def draw(self, room: float) -> Dispatch | None:
        """The next batch or batches, no more than `room` of them; None at the end of the input."""
        first, self._first = self._first, None
        return self._dispatcher.draw(room) if first is None else single(first)

    def away(self, seconds: float) -> None:
        """Time in which the call did nothing, because its caller did."""
        if self._began is not None:
            self._began += seconds

    def consider(
        self, room: float, one_by_one: Callable[[list[Any]], Any], grouped: Callable[[Dispatch], Any], batch: Any
    ) -> None:
        """Looks, after a batch, whether to draw several from now on, and tries it out.

        Args:
            room: how many more batches may be drawn.
            one_by_one: computes batches; what it gives is compared bit by bit.
            grouped: the same for a dispatch of several.
            batch: the one before.
        """
        if not self._open:
            return
        counts = self._trials.counts
        if self._began is None:
            self._began = perf_counter()  # behind the first batch, which may have compiled
            if (shapes := shapes_of(batch)) in counts:
                self._open, self._dispatcher.k = False, counts[shapes]
            return
        self._trials.batches += 1
        if self._seconds < _TRIAL_SECONDS:
            return
        self._open = False
        if self._seconds > SLOW_STEP_SECONDS * self._trials.batches:
            return  # the input is slow, or the model
        count = self._tried(room, one_by_one, grouped)
        if count is not None:
            self._dispatcher.k = counts[shapes_of(batch)] = count

    def close(self) -> None:
        """Notes how long the program has run."""
        if self._open:
            self._trials.seconds = self._seconds

    @property
    def _seconds(self) -> float:
        return self._trials.seconds + (0.0 if self._began is None else perf_counter() - self._began)

    def _tried(
        self, room: float, one_by_one: Callable[[list[Any]], Any], grouped: Callable[[Dispatch], Any]
    ) -> int | None:
        """How many batches to take; None where there are too few to try with."""
        dispatcher = self._dispatcher
        batches = dispatcher.take(int(min(CANDIDATE, room)))
        try:
            if len(batches) < CANDIDATE or len({shapes_of(batch) for batch in batches}) > 1:
                return None
            if _bytes(batches[0][:2]) * CANDIDATE > _MOST_BYTES:
                return 1
            if _bytes(one_by_one(batches[:1])) * CANDIDATE > _MOST_BYTES:
                return 1

            def in_one_dispatch() -> Any:
                group = stacked(batches, dispatcher.stack_arrays)
                assert group is not None
                return grouped(group)

            worth_it, figures = is_worth_it(lambda: one_by_one(batches), in_one_dispatch)
            count = CANDIDATE if worth_it else 1
            _log.info("Batches a dispatch: %d (%s).", count, figures)
            return count
        finally:
            for batch in reversed(batches):
                dispatcher.push_back(batch)


def _bytes(tree: Any) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))
