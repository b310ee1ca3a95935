"""What processes agree on with every batch: a few numbers, reduced on the devices next to the step.

None of this passes through the coordinator, and its size does not depend on the number of processes.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from estimator_core._cluster.processes import gather
from estimator_core.coordinator import Coordinator

#: How many numbers a process contributes. Their negatives are sent too, so that one maximum also yields the minimum.
WIDTH = 4


class Range(NamedTuple):
    """The minimum and the maximum over the processes, number by number."""

    low: tuple[int, ...]
    high: tuple[int, ...]


#: Sends this process's numbers now. The returned function waits for those of all.
Flags = Callable[[Sequence[int]], Callable[[], Range]]


def step_flags(mesh: Mesh) -> Flags:
    """Flags over the devices of a mesh, up to `WIDTH` int32 per process.

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
            # Wait first: an error of the network is then jax's own, and not a ValueError of numpy.
            told = np.asarray(array.addressable_data(0).block_until_ready()).tolist()
            return Range(low=tuple(-number for number in told[WIDTH:]), high=tuple(told[:WIDTH]))

        return of_all

    return give


@functools.cache
def reduction(mesh: Mesh) -> Callable[[jax.Array], jax.Array]:
    """The program of a mesh: the maximum over a row of each device, replicated on all of them."""
    whole = NamedSharding(mesh, PartitionSpec())
    return jax.jit(lambda flags: jnp.max(flags, axis=0), out_shardings=whole)


def agreed_batches(
    flags: Flags, processes: Coordinator, topic: str
) -> Callable[[Mapping[str, Any]], Callable[[], list[Mapping[str, Any]]]]:
    """Exchanges facts about each batch: `rows`, `size`, other facts that must be equal, and the mapping `flags`.

    The values of `flags` are empty while nothing is requested. If all batches are alike and nothing is requested, the
    numbers on the devices suffice. Otherwise the coordinator gathers the facts: at the end of an input, and for each
    request.
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
