"""How many training steps one call of the device program runs, and the batches it runs on."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax

_log = logging.getLogger("estimator_core")


#: `(state, features, labels, weights) -> (state, outputs)`
Program = Callable[[Any, Any, Any, Any], tuple[Any, dict[str, Any]]]


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
        stack_trees: stacks the trees of several batches along a new leading axis, on the devices.
        k: steps per dispatch; groups are of exactly `k` or 1, so that only two executables exist per batch shape.
    """

    def __init__(self, source: Iterator[Any], k: int, stack_trees: Callable[[Any], Any]) -> None:
        self._source = source
        self.stack_trees = stack_trees
        self._pending: deque[Any] = deque()
        self.k = k

    def take(self, count: int) -> list[Any]:
        """Up to `count` batches, to look at and push back."""
        batches: list[Any] = []
        while len(batches) < count and (batch := self._next()) is not None:
            batches.append(batch)
        return batches

    def push_back(self, batch: Any) -> None:
        """Returns a batch that was drawn but not used."""
        self._pending.appendleft(batch)

    def draw(self, room: float) -> Dispatch | None:
        """The next group, of `k` batches if `room` steps or more are free before somebody wants control; None at the
        end of the input.
        """
        if self.k == 1 or room < self.k:
            batch = self._next()
            return None if batch is None else single(batch)
        return self._group()

    def _group(self) -> Dispatch | None:
        while len(self._pending) < self.k:
            batch = next(self._source, None)
            if batch is None:
                break
            self._pending.append(batch)
        if not self._pending:
            return None
        first = self._pending[0]
        if len(self._pending) < self.k or any(
            not same_shapes(first, self._pending[index]) for index in range(1, self.k)
        ):
            return single(self._pending.popleft())
        return stack([self._pending.popleft() for _ in range(self.k)], self.stack_trees)

    def _next(self) -> Any:
        return self._pending.popleft() if self._pending else next(self._source, None)


def single(batch: Any) -> Dispatch:
    """One batch as a dispatch."""
    return Dispatch(batch.features, batch.labels, batch.weights, 1, batch)


def stack(batches: list[Any], stack_trees: Callable[[Any], Any]) -> Dispatch:
    """Batches of one shape as one dispatch."""
    trees = [(batch.features, batch.labels, batch.weights) for batch in batches]
    features, labels, weights = stack_trees(trees)
    return Dispatch(features, labels, weights, len(batches), batches[-1])


def same_shapes(one: Any, other: Any) -> bool:
    """Whether two batches can be stacked."""
    left, left_tree = jax.tree.flatten((one.features, one.labels, one.weights))
    right, right_tree = jax.tree.flatten((other.features, other.labels, other.weights))
    return left_tree == right_tree and all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in zip(left, right, strict=True)
    )
