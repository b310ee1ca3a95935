"""How many training steps one call of the device program runs, and the batches it runs on."""

from __future__ import annotations

import itertools
import logging
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from jax.tree_util import tree_flatten, tree_unflatten

_log = logging.getLogger("estimator_core")
_new = tuple.__new__  # half the time of calling the class: one is made for every step


#: `(state, features, labels, weights) -> (state, outputs)`
Program = Callable[[Any, Any, Any, Any], tuple[Any, dict[str, Any]]]
Stacking = Callable[[Sequence[Any]], Any]


class Dispatch(NamedTuple):
    """Batches for one call: one batch as it is, or several of one shape stacked along a new leading axis."""

    features: Any
    labels: Any
    weights: Any
    steps: int
    last: Any


class Dispatcher:
    """Draws batches and groups them.

    Args:
        source: iterator of Batch.
        stack_arrays: stacks arrays of one shape along a new leading axis, on the devices.
        k: steps per dispatch; groups are of exactly `k` or 1, so that only two executables exist per batch shape.
        alone: whether the batches concern this process only. Otherwise none is drawn before its time, and an error of
            the input is raised at once, because the other processes stop there.
        patience: seconds that drawing a group may take; behind one that took longer batches come one by one.
    """

    def __init__(
        self, source: Iterator[Any], k: int, stack_arrays: Stacking, *, alone: bool = True, patience: float = math.inf
    ) -> None:
        self._source = iter(source)
        self.alone = alone
        self._patience = patience
        self._ended = False
        self.stack_arrays = stack_arrays
        self._pending: deque[Any] = deque()
        self._prepared: Dispatch | None = None
        self._prepared_from: list[Any] = []
        self._error: Exception | None = None
        self.k = k
        #: What `shapes_of` gives for the batches that may be grouped; None: any.
        self.only: Any = None

    def take(self, count: int) -> list[Any]:
        """Up to `count` batches, to look at and push back."""
        batches: list[Any] = []
        while len(batches) < count and (batch := self._next()) is not None:
            batches.append(batch)
        return batches

    def push_back(self, batch: Any) -> None:
        """Returns a batch that was drawn but not used."""
        self._pending.appendleft(batch)

    def prepare(self, room: float) -> None:
        """Draws and stacks the next group already, while the device is busy: called before the host waits for it.

        Nothing where fewer than `k` steps are left: an iterator may be handed in again and must not lose batches.
        """
        if self.k == 1 or room < self.k or self._prepared is not None or not self.alone:
            return
        self._prepared = self._group()

    def draw(self, room: float) -> Dispatch | None:
        """The next group, of `k` batches if `room` steps or more are free before somebody wants control; None at the
        end of the input.

        Raises:
            Exception: what the input raised, once every batch before that has been given (if `alone`).
        """
        if self.k == 1 and not self._pending and not self._ended:  # most runs, at every step
            for batch in self._source:
                return _new(Dispatch, (batch.features, batch.labels, batch.weights, 1, batch))
            self._ended = True
            return None
        dispatch = self._draw(room)
        if dispatch is None and self._error is not None:
            raise self._error
        return dispatch

    def _draw(self, room: float) -> Dispatch | None:
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            if prepared.steps <= room:
                return prepared
            self._pending.extendleft(reversed(self._prepared_from))
        if self.k == 1 or room < self.k:
            batch = self._next()
            return None if batch is None else single(batch)
        return self._group()

    def _group(self) -> Dispatch | None:
        began, pending = perf_counter(), self._pending
        batch = self._next()
        if batch is None:
            return None
        pending.appendleft(batch)
        group: Dispatch | None = None
        if self.only is None or shapes_of(batch) == self.only:
            while len(pending) < self.k and (batch := self._drawn()) is not None:
                pending.append(batch)
                if perf_counter() - began > self._patience:
                    self.k = 1
            if len(pending) >= self.k > 1:
                group = stacked(list(itertools.islice(pending, self.k)), self.stack_arrays)
        self._prepared_from = batches = [pending.popleft() for _ in range(1 if group is None else self.k)]
        return single(batches[0]) if group is None else group

    def _next(self) -> Any:
        return self._pending.popleft() if self._pending else self._drawn()

    def _drawn(self) -> Any:
        if self._ended:  # an input that has ended is not asked again
            return None
        try:
            batch = next(self._source, None)
        except Exception as error:
            if not self.alone:
                raise
            self._error, batch = error, None
        self._ended = batch is None
        return batch


def single(batch: Any) -> Dispatch:
    """One batch as a dispatch."""
    return Dispatch(batch.features, batch.labels, batch.weights, 1, batch)


def stacked(batches: list[Any], stack_arrays: Stacking) -> Dispatch | None:
    """Batches as one dispatch; None where they are not of one shape."""
    flat = [tree_flatten((batch.features, batch.labels, batch.weights)) for batch in batches]
    first, structure = flat[0]
    shapes = [leaf.shape for leaf in first]
    for leaves, other in flat:  # an input's dtypes do not change
        if other != structure or [leaf.shape for leaf in leaves] != shapes:
            return None
    columns = zip(*[leaves for leaves, _ in flat], strict=True)
    features, labels, weights = tree_unflatten(structure, [stack_arrays(column) for column in columns])
    return Dispatch(features, labels, weights, len(batches), batches[-1])


def shapes_of(batch: Any) -> Any:
    """What batches must have in common to be stacked; can be a key."""
    leaves, structure = tree_flatten((batch.features, batch.labels, batch.weights))
    return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)
