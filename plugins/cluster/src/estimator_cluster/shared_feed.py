"""Batches that several processes draw together, and the numbers that they exchange with each batch.

These numbers do not pass through the coordinator, and their size does not depend on the number of processes.
"""

from __future__ import annotations

import functools
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from estimator_cluster.calls import count_drawn
from estimator_core.agreement import gather
from estimator_core.coordinator import Coordinator
from estimator_core.errors import InputError
from estimator_core.inputs import BatchSource

#: The number of integers from each process. Their negatives are sent too, so that one maximum also yields the minimum.
WIDTH = 4


class Range(NamedTuple):
    """The minimum and the maximum over the processes, number by number."""

    low: tuple[int, ...]
    high: tuple[int, ...]


#: Sends the numbers of this process at once. The returned function waits for those of all processes.
Flags = Callable[[Sequence[int]], Callable[[], Range]]


def step_flags(mesh: Mesh) -> Flags:
    """Returns flags over the devices of a mesh, up to `WIDTH` int32 per process.

    The reduction is queued like a step and runs when the device reaches it. A reader one dispatch later does not wait.
    All processes must send in the same order.

    Example:
        >>> flags = step_flags(jax.make_mesh((1,), ("data",)))
        >>> flags([3, 0])()
        Range(low=(3, 0, 0, 0), high=(3, 0, 0, 0))
    """
    sharding = NamedSharding(mesh, PartitionSpec(tuple(mesh.axis_names)))
    shape = (mesh.size, 2 * WIDTH)
    reduced = reduction(mesh)

    @functools.lru_cache(maxsize=2)  # most batches repeat the numbers of the previous one
    def on_devices(numbers: tuple[int, ...]) -> jax.Array:
        row = np.array([[*numbers, *(-number for number in numbers)]], np.int32)
        return jax.make_array_from_callback(shape, sharding, lambda index: row)

    def give(numbers: Sequence[int]) -> Callable[[], Range]:
        array = reduced(on_devices((*numbers, *[0] * (WIDTH - len(numbers)))))

        def of_all() -> Range:
            # Wait first, so that a network error is raised by jax and not as a ValueError of numpy.
            told = np.asarray(array.addressable_data(0).block_until_ready()).tolist()
            return Range(low=tuple(-number for number in told[WIDTH:]), high=tuple(told[:WIDTH]))

        return of_all

    return give


@functools.cache
def reduction(mesh: Mesh) -> Callable[[jax.Array], jax.Array]:
    """Returns the program of a mesh: the maximum over a row of each device, replicated on all of them."""
    whole = NamedSharding(mesh, PartitionSpec())
    return jax.jit(lambda flags: jnp.max(flags, axis=0), out_shardings=whole)


def agreed_batches(
    flags: Flags, processes: Coordinator, topic: str
) -> Callable[[Mapping[str, Any]], Callable[[], list[Mapping[str, Any]]]]:
    """Exchanges data about each batch: `rows`, `size`, other values that must be equal, and the mapping `flags`.

    The values of `flags` are empty while nothing is requested. If all batches are alike and nothing is requested, the
    numbers on the devices suffice. Otherwise, at the end of an input and for each request, the coordinator gathers the
    data.
    """

    def tell(told: Mapping[str, Any]) -> Callable[[], list[Mapping[str, Any]]]:
        rows = -1 if told["rows"] is None else told["rows"]
        alike = zlib.crc32(str([value for name, value in told.items() if name != "flags"]).encode()) >> 1
        wait = flags([any(told["flags"].values()), rows, told["size"], alike])

        def of_all() -> list[Mapping[str, Any]]:
            low, high = wait()
            if low == high and not high[0]:
                return [told] * processes.count
            return gather(processes, topic, told)

        return of_all

    return tell


def _check_parts(parts: Sequence[Mapping[str, Any]]) -> None:
    """Checks that the batches of the processes fit together."""
    empty = [p for p, part in enumerate(parts) if part["form"] is None]
    if empty:
        raise InputError(
            f"The input of processes {empty} had no batch at all, while others did. Give every process a part: "
            "use input_context, smaller batches, or fewer processes."
        )
    if len({part["form"] for part in parts}) > 1:
        raise InputError(
            "The processes' batches differ in their features, dtypes or shapes: "
            + "; ".join(f"process {p}: {part['form']}" for p, part in enumerate(parts))
            + ". All processes must run the same input_fn."
        )
    totals = [part["total"] for part in parts]
    if len(set(totals)) > 1:
        raise InputError(
            f"The inputs of the processes differ in their number of examples: their batches have {totals} rows in "
            "total. All processes must run the same input_fn on the same data; an input_fn that divides its data "
            "itself must accept `input_context`."
        )


#: The number of batches drawn before they are needed, so that the messages of other processes have arrived in time.
AHEAD = 2


class Placement(Protocol):
    """The mesh of a run, which places arrays on its devices."""

    @property
    def mesh(self) -> Mesh:
        """The devices."""
        ...

    @property
    def batch_parts(self) -> int:
        """The number of parts into which a batch is split."""
        ...

    @property
    def pipelines(self) -> Sequence[Sequence[int]]:
        """The processes that read each part of the input."""
        ...

    @property
    def global_batch(self) -> Callable[..., jax.Array]:
        """Assembles an array from the rows of each process."""
        ...

    @property
    def batch_sharding(self) -> Callable[[tuple[int, ...]], NamedSharding]:
        """Returns the sharding of the arrays of a batch with a shape."""
        ...

    @property
    def put(self) -> Callable[..., jax.Array]:
        """Places an array that every process has whole."""
        ...


class SharedFeed(Iterator[Any]):
    """Global batches, assembled from the inputs of all processes. The feed ends when all inputs have ended.

    Rows that the core divides (`Batch.total`), and an input's own parts of equal size, are put on the devices
    unchanged. At the end of the input, the parts may differ or be missing. Then every process receives all parts, so
    that each example counts once with any number of processes.

    Args:
        source: the batches of this process on the host. It has a method `close()`.
        placement: the mesh.
        processes: the processes that draw together.
        name: the name of the feed, the same in all processes.
        part: the part of the input that this process reads with `source`.
    """

    def __init__(self, source: Any, placement: Placement, processes: Coordinator, name: str, part: BatchSource) -> None:
        self._source, self._placement = source, placement
        self._processes, self._name, self._part = processes, name, part
        self._tell = agreed_batches(step_flags(placement.mesh), processes, name)
        self._ahead: deque[tuple[Any, Callable[[], Sequence[Mapping[str, Any]]]]] = deque()
        self._begun = self._ended = False
        self._last: Any = None
        self.flags: Callable[[], Mapping[str, Any]] = _no_flags
        self.learn: Callable[[Sequence[Mapping[str, Any]]], None] = _ignore

    def __next__(self) -> Any:
        while len(self._ahead) <= AHEAD:
            self._draw()
        batch, told = self._ahead.popleft()
        parts = told()
        self.learn([part["flags"] for part in parts])
        sizes = self._sizes([part["rows"] for part in parts])
        if not any(sizes):
            raise StopIteration
        if batch is not None:
            self._last = batch
        _check_parts(parts)
        if parts[0]["total"] is not None:
            return self._dealt(batch)
        size = sum(parts[members[0]]["size"] for members in self._placement.pipelines)
        return self._shared(batch, sizes)._replace(size=size)

    def close(self) -> None:
        """Stops drawing."""
        self._source.close()

    def _draw(self) -> None:
        batch = None if self._ended else next(self._source, None)
        if not self._begun:
            self._begun, batch = True, self._unless_over(batch)
        self._ended = batch is None
        if batch is not None:
            self._form = _form(batch)
        told = {
            "rows": None if batch is None else _rows(batch),
            "size": 0 if batch is None else batch.size,
            "total": None if batch is None else batch.total,
            "form": getattr(self, "_form", None),
            "flags": dict(self.flags()),
        }
        count_drawn()  # before the devices of a lone process wait for the others
        self._ahead.append((batch, self._tell(told)))

    def _unless_over(self, first: Any) -> Any:
        """Returns the first batch; None if this part has ended at its saved position and another part has not."""
        part = self._part
        if part.continues_at is None or all(gather(self._processes, f"{self._name}-ended", part.ended)):
            return first
        if first is None or not part.ended:
            return first
        # The batch shows the form of the batches that other processes have. Its rows were used before.
        part.stay_ended()
        self._form, self._last = _form(first), first._replace(position=part.continues_at)
        return None

    def _sizes(self, rows: Sequence[int | None]) -> list[int]:
        """Returns the number of rows of each part of the input. Processes that share a part must have equal numbers."""
        sizes: list[int] = []
        for members in self._placement.pipelines:
            found = {rows[p] for p in members}
            if len(found) > 1:
                raise InputError(
                    f"Processes {list(members)} hold the same part of the batch, since the mesh splits no batch axis "
                    f"between them, but their inputs have {[rows[p] for p in members]} rows. Their inputs must be the "
                    "same: shard by input_context, and shuffle with a seed."
                )
            sizes.append(found.pop() or 0)
        return sizes

    def _dealt(self, batch: Any) -> Any:
        features, labels, weights = jax.tree.map(
            lambda leaf: self._placement.global_batch(leaf, batch.total), (batch.features, batch.labels, batch.weights)
        )
        return batch._replace(features=features, labels=labels, weights=weights)

    def _shared(self, batch: Any, sizes: list[int]) -> Any:
        placement = self._placement
        total = sum(sizes)
        like = self._last
        trees = (like.features, like.labels, like.weights)
        if len(set(sizes)) == 1 and total % placement.batch_parts == 0:
            features, labels, weights = jax.tree.map(placement.global_batch, trees)
        else:
            features, labels, weights = self._gathered(trees, sizes, absent=batch is None)
        return like._replace(features=features, labels=labels, weights=weights)

    def _gathered(self, trees: Any, sizes: list[int], *, absent: bool) -> Any:
        """Gathers all parts in every process, and then splits them like a batch of one process."""
        from jax.experimental import multihost_utils

        most = max(sizes)
        first = [members[0] for members in self._placement.pipelines]

        def of_all(leaf: Any) -> Any:
            own = np.zeros((most, *leaf.shape[1:]), leaf.dtype)
            if not absent:
                own[: leaf.shape[0]] = leaf
            parts = np.asarray(multihost_utils.process_allgather(own))
            whole = np.concatenate([parts[p][:rows] for p, rows in zip(first, sizes, strict=True)])
            return self._placement.put(whole, self._placement.batch_sharding(whole.shape))

        return jax.tree.map(of_all, trees)


def _rows(batch: Any) -> int:
    leaves = jax.tree.leaves((batch.features, batch.labels))
    return int(leaves[0].shape[0]) if leaves else batch.size


def _form(batch: Any) -> str:
    paths = jax.tree_util.tree_leaves_with_path((batch.features, batch.labels))
    return ", ".join(f"{jax.tree_util.keystr(path)} {leaf.dtype}{list(leaf.shape[1:])}" for path, leaf in paths)


def _no_flags() -> Mapping[str, Any]:
    return {"stop": None, "due": []}


def _ignore(told: Sequence[Mapping[str, Any]]) -> None:
    pass
