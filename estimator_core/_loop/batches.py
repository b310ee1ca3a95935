"""The batches of a call on their way to the device program: drawn ahead, placed on the devices, and grouped."""

from __future__ import annotations

import itertools
import logging
import math
import statistics
from collections import deque
from collections.abc import Iterator
from time import perf_counter
from typing import Any, Literal, Protocol

from estimator_core._backends import Devices
from estimator_core._inputs import Batch
from estimator_core._loop.agreement import of_several
from estimator_core._loop.dispatch import Dispatch, Stacking, shapes_of, single, stacked
from estimator_core._loop.time_spent import TimeSpent
from estimator_core._plugins import Plugins

_log = logging.getLogger("estimator_core")

#: If drawing a batch takes no longer than this, the device is the bottleneck and not the input.
QUICK_DRAW_SECS = 0.001
_new = tuple.__new__  # takes half the time of calling the class; one is made for every step
_MEASURED = 8
_DEPTH = 4
#: The numbers of feeds. Every process opens the same feeds in the same order.
_NUMBERS = itertools.count()
#: Counts the slow inputs. The first one of a process is told, not each evaluation again.
_SLOW = itertools.count()


class Feed(Iterator[Any]):
    """An iterator of placed batches that can be closed.

    With "auto", the first batches are drawn inline and timed. A thread that draws ahead costs about 150 microseconds
    per batch, so it is started only when drawing takes longer than a millisecond.
    """

    def __init__(self, source: Any, place: Any, depth: int | Literal["auto"]) -> None:
        self._source: Any = source
        self._place = place
        if isinstance(depth, int) and depth > 0:
            self._draw_ahead(depth)
        self._batches = itertools.chain.from_iterable(self._parts(measure=depth == "auto"))

    def __iter__(self) -> Iterator[Any]:
        return self._batches

    def __next__(self) -> Any:
        return next(self._batches)

    def close(self) -> None:
        """Stops drawing, and joins the thread if there is one."""
        self._source.close()

    def _parts(self, *, measure: bool) -> Iterator[Iterator[Any]]:
        """Yields iterators of all batches, one after another. A method or a generator would cost one call per batch."""
        if measure:
            yield self._measured()
        yield iter(self._source) if self._place is None else map(self._place, self._source)

    def _measured(self) -> Iterator[Any]:
        """Yields the first batches. Then a thread may replace this iterator."""
        place = self._place or _as_it_is
        times: list[float] = []
        while len(times) < _MEASURED:
            began = perf_counter()
            batch = next(self._source, None)
            if batch is None:
                return
            batch = place(batch)
            times.append(perf_counter() - began)
            yield batch
        # The first draw opens the input, so its time is not representative.
        seconds = statistics.median(times[1:])
        if seconds > QUICK_DRAW_SECS:
            _log.log(
                logging.DEBUG if next(_SLOW) else logging.INFO,
                "Drawing a batch takes %.1f ms, so a thread draws %d batches ahead (RunConfig.prefetch).",
                seconds * 1e3,
                _DEPTH,
            )
            self._draw_ahead(_DEPTH)

    def _draw_ahead(self, depth: int) -> None:
        from estimator_core._inputs.prefetch import prefetch

        self._source = prefetch(self._source, self._place or _as_it_is, depth=depth)
        self._place = None


class Fed(Iterator[Any], Protocol):
    """The batches that a loop draws, and how it stops drawing."""

    def close(self) -> None:
        """Stops drawing."""
        ...


def feed(source: Any, devices: Devices, depth: int | Literal["auto"], plugins: Plugins) -> Fed:
    """Returns the batches of an input, placed on the devices."""
    placement = devices.placement
    if placement.spans_processes:
        own, name = Feed(source, None, depth), f"feed-{next(_NUMBERS)}"
        shared: Fed = of_several(plugins).SharedFeed(own, placement, devices.processes, name, source)
        return shared
    return Feed(source, None if placement.single else placement.batch, depth)


def _as_it_is(batch: Any) -> Any:
    return batch


class Ways(Protocol):
    """The two ways in which a program computes batches. They are compared bit by bit before one replaces the other."""

    def one_by_one(self, batches: list[Batch]) -> Any:
        """Returns the results of the program for batches one after another."""
        ...

    def together(self, dispatch: Dispatch) -> Any:
        """Returns the same results for one dispatch of all of them."""
        ...

    def has_effects(self, dispatch: Dispatch, /) -> bool:
        """Returns whether the computation calls back to the host, so that it must not be repeated."""
        ...


class Batches:
    """Supplies batches one by one, or `k` batches of one shape at once. Looking ahead does not consume batches.

    Args:
        source: an iterator of Batch. After it has ended or failed, it is not called again.
        stack_arrays: a function that stacks arrays of one shape along a new leading axis, on the devices.
        account: the account that receives the seconds of drawing.
        alone: whether the batches belong to this process alone. Otherwise no batch is drawn ahead, and an input error
            is raised at once, because the other processes stop at the same place.

    Attributes:
        k: the number of steps per dispatch. Groups have exactly `k` or 1 batches, so that each batch shape has only two
            executables.
        quick: whether the newest draw was too short to delay the device.
        newest: the newest dispatch.

    Example:
        >>> import numpy as np
        >>> from estimator_core._inputs import open_input
        >>> source = open_input(lambda: [({"x": np.full((2, 1), n)}, None) for n in range(5)], mode="eval")
        >>> batches = Batches(source, np.stack, TimeSpent())
        >>> batches.group(3)
        >>> len(batches.peek(2)), [batches.draw(room=10).steps for _ in range(3)]
        (2, [3, 1, 1])
    """

    def __init__(
        self, source: Iterator[Batch], stack_arrays: Stacking, account: TimeSpent, *, alone: bool = True
    ) -> None:
        self._source = iter(source)
        self.stack_arrays = stack_arrays
        self._account = account
        self.alone = alone
        self.k = 1
        self.quick = True
        self._only: Any = None
        self._patience = math.inf
        self._ahead: deque[Batch] = deque()
        self._group: Dispatch | None = None  # the first batches in `_ahead`, which stay there until the group is used
        self.newest: Dispatch | None = None
        self._error: Exception | None = None
        self._over = False

    def group(self, k: int, *, only: object = None, patience: float = math.inf) -> None:
        """Makes dispatches of `k` batches from now on.

        Args:
            k: the number of batches.
            only: the result of `shapes_of` for the batches that may be grouped. None: any.
            patience: the seconds that drawing a group may take. After a slower group, batches are passed one by one.
        """
        self.k, self._only, self._patience = k, only, patience

    def peek(self, count: int = 1) -> list[Batch]:
        """Returns the next batches, up to `count`, without consuming them."""
        while len(self._ahead) < count and self._draw_one():
            pass
        return list(itertools.islice(self._ahead, count))

    def first(self) -> Batch | None:
        """Returns the next batch, without consuming it; None if the input is empty.

        Raises:
            Exception: the error that the input raised.
        """
        batches = self.peek()
        if not batches:
            self._over = True
            self.raise_error()
        return batches[0] if batches else None

    def singles(self) -> Iterator[Batch] | None:
        """Returns the source of batches if they are passed one by one and none has been drawn ahead; otherwise None."""
        return self._source if self.k == 1 and not self._ahead else None

    def end(self, error: Exception | None = None) -> None:
        """Records that the source has ended, or failed."""
        self._source, self._over = iter(()), True
        if error is not None:
            self._note(error)

    def draw(self, room: float) -> Dispatch | None:
        """Returns the next dispatch, of `k` batches if at least `room` steps are free before a hook needs control; None
        if the input has ended or failed, see `raise_error`.
        """
        began = perf_counter()
        dispatch: Dispatch | None = None
        if self.k == 1 and not self._ahead:  # the case of most runs, at every step
            try:
                for batch in self._source:
                    dispatch = _new(Dispatch, (batch.features, batch.labels, batch.weights, 1, batch))
                    break
            except Exception as error:
                self._note(error)
        else:
            dispatch = self._group_or_single(room)
        took = perf_counter() - began
        self._account.drawn += took
        if dispatch is None:
            self._source, self._over = iter(()), True
        else:
            self.quick = took < QUICK_DRAW_SECS * dispatch[3]  # the steps: an index is faster than a name
        self.newest = dispatch
        return dispatch

    def prepare(self, room: float) -> None:
        """Draws and stacks the next group while the device is busy. Called before the host waits for the device.

        It does nothing if fewer than `k` steps are left, because an iterator may be used again and must not lose
        batches.
        """
        if self.k > 1 and room >= self.k and self._group is None and self.alone:
            began = perf_counter()
            self._group = self._stacked()
            self._account.drawn += perf_counter() - began

    def raise_error(self) -> None:
        """Raises the error of the input, after every batch before it has been used."""
        if self._over and self._error is not None:
            raise self._error

    def _group_or_single(self, room: float) -> Dispatch | None:
        """Returns the next group if `room` permits it, and a dispatch of one batch otherwise; None at the end."""
        group, self._group = self._group, None
        if group is None and 1 < self.k <= room:
            group = self._stacked()
        if group is not None and group.steps <= room:
            for _ in range(group.steps):
                self._ahead.popleft()
            return group
        return single(self._ahead.popleft()) if self.peek() else None

    def _stacked(self) -> Dispatch | None:
        """Returns the next `k` batches as one dispatch; None if there are too few, or their shapes differ."""
        began, ahead = perf_counter(), self._ahead
        if not self.peek() or (self._only is not None and shapes_of(ahead[0]) != self._only):
            return None
        while len(ahead) < self.k and self._draw_one():
            if perf_counter() - began > self._patience:
                self.k = 1
        if self.k == 1 or len(ahead) < self.k:
            return None
        return stacked(list(itertools.islice(ahead, self.k)), self.stack_arrays)

    def _draw_one(self) -> bool:
        """Draws one batch. Returns False if there are no more."""
        try:
            for batch in self._source:
                self._ahead.append(batch)
                return True
        except Exception as error:
            self._note(error)
        self._source = iter(())
        return False

    def _note(self, error: Exception) -> None:
        if not self.alone:
            raise error
        self._error = error
