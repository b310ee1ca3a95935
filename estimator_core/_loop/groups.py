"""Several batches of an evaluation or of predictions in one dispatch: as asked, or once that has proved faster."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

import jax

from estimator_core._loop.dispatch import Dispatch, Dispatcher, Stacking, shapes_of, single, stacked
from estimator_core._loop.steps_per_dispatch import CANDIDATE, SLOW_STEP_SECONDS, is_worth_it

_log = logging.getLogger("estimator_core")
#: A program that has run for so long is worth a trial, which compiles it once more.
_TRIAL_SECONDS = 0.5
#: Of the batches of one dispatch, and of what is computed from them: larger ones gain nothing, and cost memory.
_MOST_BYTES = 4 * 2**20
#: Drawing a group may take so long; an input that has become slower gives its batches one by one again.
_PATIENCE_SECONDS = 0.1


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
        >>> from estimator_core._inputs import open_input
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
        patience = _PATIENCE_SECONDS if asked == "auto" else math.inf
        self._dispatcher = Dispatcher(source, 1 if asked == "auto" else asked, stack_arrays, patience=patience)
        self._first = first
        self._trials = GroupTrials() if trials is None else trials
        self._open = asked == "auto"
        self._began: float | None = None

    def draw(self, room: float) -> Dispatch | None:
        """The next batch or batches, no more than `room` of them; None at the end of the input."""
        first, self._first = self._first, None
        return self._dispatcher.draw(room) if first is None else single(first)

    @contextmanager
    def away(self) -> Generator[None]:
        """Within, the call does nothing, because its caller does."""
        began = perf_counter()
        try:
            yield
        finally:
            if self._began is not None:
                self._began += perf_counter() - began

    def due(self, batch: Any) -> bool:
        """Whether, after this batch, it is time to try several; costs little as long as it is not.

        What is known of batches of its shapes is taken up here.
        """
        if not self._open:
            return False
        trials = self._trials
        if self._began is None:
            self._began = perf_counter()  # behind the first batch, which may have compiled
            if (shapes := shapes_of(batch)) in trials.counts:
                self._settle(shapes, trials.counts[shapes])
            return False
        trials.batches += 1
        if self._seconds < _TRIAL_SECONDS:
            return False
        self._open = False
        slow = self._seconds > SLOW_STEP_SECONDS * trials.batches
        if slow:  # the input, or the model: a later call looks again
            trials.seconds, trials.batches = 0.0, 0
        return not slow

    def try_out(self, room: float, one_by_one: Callable[[list[Any]], Any], grouped: Callable[[Dispatch], Any]) -> None:
        """Computes 20 batches one by one and in one dispatch, puts them back, and keeps what is better.

        Args:
            room: how many more batches may be drawn.
            one_by_one: computes batches; what it gives is compared bit by bit.
            grouped: the same for a dispatch of several.
        """
        batches = self._dispatcher.take(int(min(CANDIDATE, room)))
        try:
            if len(batches) == CANDIDATE and len({shapes_of(batch) for batch in batches}) == 1:
                self._settle(shapes_of(batches[0]), self._tried(batches, one_by_one, grouped))
        finally:
            for batch in reversed(batches):
                self._dispatcher.push_back(batch)

    def close(self) -> None:
        """Notes how long the program has run."""
        if self._open:
            self._trials.seconds = self._seconds

    @property
    def _seconds(self) -> float:
        return self._trials.seconds + (0.0 if self._began is None else perf_counter() - self._began)

    def _settle(self, shapes: Any, count: int) -> None:
        self._open = False
        self._trials.counts[shapes] = count
        self._dispatcher.k, self._dispatcher.only = count, shapes

    def _tried(
        self, batches: list[Any], one_by_one: Callable[[list[Any]], Any], grouped: Callable[[Dispatch], Any]
    ) -> int:
        if _bytes(batches[0][:2]) * CANDIDATE > _MOST_BYTES:
            return 1
        if _bytes(one_by_one(batches[:1])) * CANDIDATE > _MOST_BYTES:
            return 1

        def in_one_dispatch() -> Any:
            group = stacked(batches, self._dispatcher.stack_arrays)
            assert group is not None
            return jax.device_get(grouped(group))

        try:
            worth_it, figures = is_worth_it(lambda: jax.device_get(one_by_one(batches)), in_one_dispatch)
        except Exception as error:  # one by one it works
            worth_it, figures = False, f"several cannot be computed in one: {error}"
        count = CANDIDATE if worth_it else 1
        _log.info("Batches a dispatch: %d (%s).", count, figures)
        return count


def _bytes(tree: Any) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))
