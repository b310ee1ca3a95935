"""Random trees on eight devices, saved with one sharding by several writers and placed with another."""

import tempfile
from collections import Counter
from typing import Any

import jax
import numpy as np
from cuts import DTYPES, bits
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from estimator_core._packs.entry import pack_name
from estimator_core._packs.fetch import read_boxes
from estimator_core._packs.packs import Packs
from estimator_core._packs.place import place
from estimator_core._packs.stored import stored_arrays
from estimator_core._packs.write import HostPiece, write_pack
from estimator_core._storage.contract import Data
from estimator_core._storage.local import LocalStorage

MESHES = ((8,), (2, 4), (4, 2), (1,), (2,), (3,), (2, 2, 2), (5,))
seen: Counter[str] = Counter()


class Counting(LocalStorage):
    """Counts the requested bytes."""

    asked = 0

    def get_ranges(self, key: str, ranges: Any) -> list[Data]:
        self.asked += sum(end - begin for begin, end in ranges)
        return super().get_ranges(key, ranges)


@st.composite
def shardings(draw: st.DrawFn, shape: tuple[int, ...]) -> NamedSharding:
    """Draws a sharding over some of the devices in any order. Each axis of the mesh splits one axis of the array or
    none.
    """
    sizes = draw(st.sampled_from(MESHES))
    order = draw(st.permutations(range(8)))
    grid = np.array([jax.devices()[place] for place in order[: int(np.prod(sizes))]], dtype=object).reshape(sizes)
    mesh = Mesh(grid, tuple(f"m{axis}" for axis in range(len(sizes))))
    spec: list[list[str]] = [[] for _ in shape]
    for axis, size in mesh.shape.items():
        able = [a for a, n in enumerate(shape) if n % (size * int(np.prod([mesh.shape[m] for m in spec[a]]))) == 0]
        chosen = draw(st.sampled_from([None, *able]))
        if chosen is not None:
            spec[chosen].append(axis)
    return NamedSharding(mesh, PartitionSpec(*map(tuple, spec)))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def comes_back(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 5))
    values, before, after = {}, {}, {}
    for number in range(count):
        shape = data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 6, 8, 16, 24, 40]), max_size=3).map(tuple))
        values[f"v{number}"] = bits(data.draw(st.sampled_from([d for d in DTYPES if d != "int64"])), shape, number)
        before[f"v{number}"] = data.draw(shardings(shape))
        after[f"v{number}"] = data.draw(shardings(shape))
    saved = {name: jax.device_put(value, before[name]) for name, value in values.items()}
    writers = data.draw(st.sampled_from([1, 2, 4, 8]))
    with tempfile.TemporaryDirectory() as directory:
        storage = Counting(directory)
        entries = []
        for writer in range(writers):
            own = [
                HostPiece(
                    item="variables",
                    path=name,
                    shape=value.shape,
                    place=tuple(part.indices(n)[:2] for part, n in zip(shard.index, value.shape, strict=True)),
                    array=np.array(shard.data),
                )
                for name, value in saved.items()
                for shard in value.addressable_shards
                if shard.replica_id == 0 and shard.device.id * writers // 8 == writer
            ]
            entries.append(write_pack(storage, pack_name(writer), own)[0])
        packs = Packs(storage=storage, prefix="", where=directory, entries=tuple(entries))
        expected = {name: (value.shape, value.dtype.name) for name, value in values.items()}
        stored = stored_arrays(packs, {"variables": expected})["variables"]
        on_one = data.draw(st.booleans())
        found = place(stored, None if on_one else after, {name: value.dtype for name, value in values.items()})
    for name, value in values.items():
        array = found[name]
        assert array.dtype == value.dtype
        assert np.asarray(array).tobytes() == value.tobytes()
        if not on_one:
            assert array.sharding == after[name]
            for shard in array.addressable_shards:
                assert np.asarray(shard.data).tobytes() == np.asarray(value[shard.index]).tobytes()
        seen[value.dtype.name] += 1
        seen["empty"] += not value.size
        seen["scalar"] += not value.shape
        seen["over axes"] += len([part for part in after[name].spec if part]) > 1
        seen["replicated"] += after[name].is_fully_replicated


def each_chunk_is_read_once() -> None:
    """Checks that a chunk that several devices need is requested once, whichever axis is split."""
    value = np.arange(32 << 20, dtype=np.uint8).reshape(32, 1 << 20)
    mesh = Mesh(np.array(jax.devices()), ("d",))
    with tempfile.TemporaryDirectory() as directory:
        storage = Counting(directory)
        rows = ((row, row + 4) for row in range(0, 32, 4))
        pieces = [
            HostPiece(item="v", path="x", shape=value.shape, place=((a, b), (0, 1 << 20)), array=value[a:b])
            for a, b in rows
        ]
        packs = Packs(
            storage=storage, prefix="", where=directory, entries=(write_pack(storage, pack_name(0), pieces)[0],)
        )
        stored = stored_arrays(packs, {"v": {"x": (value.shape, "uint8")}})["v"]
        for spec in (PartitionSpec("d"), PartitionSpec(None, "d"), PartitionSpec()):
            storage.asked = 0
            found = place(stored, {"x": NamedSharding(mesh, spec)}, {"x": value.dtype})
            assert np.array_equal(np.asarray(found["x"]), value)
            assert storage.asked == value.nbytes
        storage.asked = 0
        read_boxes([(stored["x"], ((4, 9), (0, 1 << 20)))])
        assert storage.asked == 8 << 20  # two pieces of four rows


if __name__ == "__main__":
    comes_back()
    each_chunk_is_read_once()
    assert min(seen[name] for name in ("empty", "scalar", "over axes", "replicated", "int4", "bfloat16", "bool")) > 3
    print("ok")
