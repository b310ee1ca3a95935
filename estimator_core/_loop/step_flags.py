"""What processes agree on with every batch: a few numbers, reduced on the devices beside the step.

Nothing of it goes over the coordinator, and its bytes do not depend on the number of processes.
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

from estimator_core._cluster.together import gather
from estimator_core.coordinator import Coordinator

#: Numbers that a process gives; their negatives go with them, so that one maximum tells the smallest too.
WIDTH = 4


class Range(NamedTuple):
    """The smallest and the largest of what the processes gave, number by number."""

    low: tuple[int, ...]
    high: tuple[int, ...]


#: Gives this process's numbers now; the function that comes back waits for those of all.
Flags = Callable[[Sequence[int]], Callable[[], Range]]


def step_flags(mesh: Mesh) -> Flags:
    """Flags over the devices of a mesh, up to `WIDTH` int32 a process.

    The reduction is queued like a step, and is done when the device comes to it: whoever reads it a dispatch later
    waits for nothing. All processes give in the same order.

    Example:
        >>> flags = step_flags(jax.make_mesh((1,), ("data",)))
        >>> flags([3, 0])()
        Range(low=(3, 0, 0, 0), high=(3, 0, 0, 0))
    """
    sharding = NamedSharding(mesh, PartitionSpec(tuple(mesh.axis_names)))
    shape = (mesh.size, 2 * WIDTH)
    reduced = reduction(mesh)

    @functools.lru_cache(maxsize=2)  # most batches say what the one before said
    def on_devices(numbers: tuple[int, ...]) -> jax.Array:
        row = np.array([[*numbers, *(-number for number in numbers)]], np.int32)
        return jax.make_array_from_callback(shape, sharding, lambda index: row)

    def give(numbers: Sequence[int]) -> Callable[[], Range]:
        array = reduced(on_devices((*numbers, *[0] * (WIDTH - len(numbers)))))

        def of_all() -> Range:
            # Waited for first: an error of the network is then jax's own, and not a ValueError of numpy.
            told = np.asarray(array.addressable_data(0).block_until_ready()).tolist()
            return Range(low=tuple(-number for number in told[WIDTH:]), high=tuple(told[:WIDTH]))

        return of_all

    return give


@functools.cache
def reduction(mesh: Mesh) -> Callable[[jax.Array], jax.Array]:
    """The program, one a mesh: the maximum over a row of each device, whole on all of them."""
    whole = NamedSharding(mesh, PartitionSpec())
    return jax.jit(lambda flags: jnp.max(flags, axis=0), out_shardings=whole)


def agreed_batches(
    flags: Flags, processes: Coordinator, topic: str
) -> Callable[[Mapping[str, Any]], Callable[[], list[Mapping[str, Any]]]]:
    """What every process tells of a batch: `rows`, `size`, whatever else must be alike, and `flags`, a mapping whose
    values are empty while nothing is wanted.

    Batches that are alike, and of which nobody wants anything, are known by the flags. What differs, and words, are
    gathered by the coordinator: at the end of an input, and where somebody asks for something.
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
