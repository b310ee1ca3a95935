"""A dispatch: its batches, its outputs, and the limit of dispatches in flight."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.tree_util import tree_flatten, tree_structure, tree_unflatten

from estimator_core._builtin_hooks.hook_parts import unknown_output
from estimator_core._inputs import Batch
from estimator_core._types import Mask, PyTree
from estimator_core.errors import HookError

#: `(state, features, labels, weights) -> (state, outputs)`.
Program = Callable[[Any, Any, Any, Any], tuple[Any, dict[str, Any]]]
Stacking = Callable[[Sequence[Any]], Any]


class Dispatch(NamedTuple):
    """Batches for one call: a single batch, or several batches of one shape, stacked along a new leading axis."""

    features: PyTree
    labels: PyTree
    weights: Mask
    steps: int
    last: Batch


def single(batch: Batch) -> Dispatch:
    """Returns one batch as a dispatch."""
    return Dispatch(batch.features, batch.labels, batch.weights, 1, batch)


def stacked(batches: Sequence[Batch], stack_arrays: Stacking) -> Dispatch | None:
    """Returns the batches as one dispatch; None if their shapes differ."""
    trees = [(batch.features, batch.labels, batch.weights) for batch in batches]
    leaves, structure = tree_flatten(trees)  # one call for all batches: a call for each takes three times as long
    first, of_one = tree_flatten(trees[0])
    shapes = [leaf.shape for leaf in leaves]  # an input's dtypes do not change
    if structure != tree_structure([trees[0]] * len(trees)) or shapes != shapes[: len(first)] * len(trees):
        return None
    columns = [stack_arrays(leaves[place :: len(first)]) for place in range(len(first))]
    features, labels, weights = tree_unflatten(of_one, columns)
    return Dispatch(features, labels, weights, len(batches), batches[-1])


def shapes_of(batch: Batch) -> Any:
    """Returns the properties that batches must share to be stacked, as a hashable value."""
    leaves, structure = tree_flatten((batch.features, batch.labels, batch.weights))
    return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)


#: The numbers of dispatches in flight. Two keep the device busy. More are allowed only if they are short, because each
#: wait costs the host a sleep and a wake-up.
LEAST, MOST = 2, 32
#: The host is ahead by no more than this many seconds, or by two dispatches. With less time, a process whose cores do
#: other work too waits more often, and loses the cores each time.
AHEAD_SECS = 0.016


class InFlightLimiter:
    """Waits for earlier dispatches, so that times on the host reflect the work of the device.

    Example:
        >>> import jax.numpy as jnp
        >>> limiter = InFlightLimiter()
        >>> for step in range(100):
        ...     limiter.add(jnp.float32(step))  # waits for a value a few steps before
    """

    def __init__(self) -> None:
        self._values: deque[Any] = deque()
        self._limit = LEAST
        self._waited_at: float | None = None

    def add(self, value: object) -> None:
        """Records a dispatch by one of its outputs, and waits until few enough are in flight."""
        values = self._values
        values.append(value)
        if len(values) > self._limit:
            self._wait()

    def _wait(self) -> None:
        count = max(1, self._limit // 2)
        for _ in range(count - 1):
            self._values.popleft()
        self._values.popleft().block_until_ready()
        now = time.perf_counter()
        if self._waited_at is not None:
            seconds = (now - self._waited_at) / count
            self._limit = max(LEAST, min(MOST, int(AHEAD_SECS / max(seconds, 1e-9))))
        self._waited_at = now


#: Up to this size, copying the values of all steps of a dispatch is cheaper than slicing the last one on the device.
_SMALL_BYTES = 4096


class LazyOutputs(Mapping[str, Any]):
    """The outputs of one dispatch. A value is copied from the device when it is first requested.

    Args:
        values: the outputs by name, with a leading axis of steps if `stacked`.
        steps: the global steps that the dispatch completed.
        stacked: whether values have a leading axis of steps.
        extras: functions that compute further values on demand, by name.
        waiting: a context that is entered while a value is awaited, so that the time can be accounted for.

    Example:
        >>> out = LazyOutputs({"loss": np.array([3.0, 2.0])}, steps=range(5, 7), stacked=True)
        >>> float(out["loss"]), out.all("loss").tolist()
        (2.0, [3.0, 2.0])
    """

    def __init__(
        self,
        values: Mapping[str, object],
        *,
        steps: range,
        stacked: bool,
        extras: Mapping[str, Callable[[], Any]] | None = None,
        waiting: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._values = values
        self._steps = steps
        self._stacked = stacked
        self._extras = extras or {}
        self._waiting = waiting
        self._read: dict[str, Any] = {}

    @property
    def steps(self) -> range:
        """The global steps that this dispatch completed."""
        return self._steps

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            with self._waiting():
                self._read[name] = (
                    self._extras[name]() if name in self._extras else _to_host(self._value(name), last=self._stacked)
                )
        return self._read[name]

    def all(self, name: str) -> np.ndarray:
        """Returns the values of every step of the dispatch, with a leading axis of steps."""
        value = self._value(name)
        if not self._stacked:
            return np.asarray(_to_host(value, last=False))[None]
        if hasattr(value, "compute"):
            fetched = jax.device_get(value)
            return np.stack(
                [
                    np.asarray(jax.tree.map(lambda leaf, index=index: leaf[index], fetched).compute())
                    for index in range(len(self._steps))
                ]
            )
        return np.asarray(value)

    def only(self, names: set[str]) -> LazyOutputs:
        """Returns the outputs of some names, so that the others can be freed."""
        return LazyOutputs(
            {name: value for name, value in self._values.items() if name in names},
            steps=self._steps,
            stacked=self._stacked,
        )

    def shapes(self, names: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each existing value of one step; () for a value that is computed on the host."""
        values, axes = self._values, int(self._stacked)
        return {name: getattr(values[name], "shape", ())[axes:] for name in names if name in values}

    @property
    def nbytes(self) -> int:
        """The size of the outputs in bytes."""
        return sum(getattr(leaf, "nbytes", 0) for leaf in jax.tree.leaves(self._values))

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._extras

    def __iter__(self) -> Iterator[str]:
        return iter([*self._values, *self._extras])

    def __len__(self) -> int:
        return len(self._values) + len(self._extras)

    def _value(self, name: str) -> Any:
        if name not in self._values:
            raise HookError(unknown_output(name, self._values))
        return self._values[name]


def check_fetches(names: Iterable[str], available: Collection[str]) -> None:
    """Refuses outputs that were declared with `run.fetch` and that no step produces.

    Raises:
        HookError: no step produces one of the names. The message has the first such name, and similar names.
    """
    for name in sorted(set(names).difference(available)):
        raise HookError(unknown_output(name, available))


def _to_host(value: object, *, last: bool) -> Any:
    if isinstance(value, jax.Array) and (not last or value.nbytes <= _SMALL_BYTES):
        host = np.asarray(value)  # without the steps below, which cost more than copying a scalar
        return np.asarray(host[-1]) if last else host
    fetched = jax.device_get(jax.tree.map(lambda leaf: leaf[-1], value) if last else value)
    return fetched.compute() if hasattr(fetched, "compute") else np.asarray(fetched)
