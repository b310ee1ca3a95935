"""A large state over several processes: `large_worker.py SETTINGS_JSON`. Each prints its resource use as its last line.

Settings: model_dir, megabytes (of the state), save (otherwise the state is restored), out.
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from train_worker import make_estimator

from estimator_core._checkpoint.newest import read_latest
from estimator_core._packs.place import place
from estimator_core.checkpoint import CheckpointItems, CheckpointStore

ARRAYS, WIDTH = 16, 1024
SPECS = {"opt_state": PartitionSpec("d"), "variables": PartitionSpec(None, "d")}


def memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def read_so_far() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


def values(number: int, index: Any, shape: tuple[int, int]) -> np.ndarray:
    """Returns elements of an array that every process can compute."""
    (top, bottom), (left, right) = (part.indices(size)[:2] for part, size in zip(index, shape, strict=True))
    rows, columns = np.arange(top, bottom, dtype=np.uint32), np.arange(left, right, dtype=np.uint32)
    return (rows[:, None] * np.uint32(WIDTH) + columns + np.uint32(number)).view(np.float32)


def main(settings: dict[str, Any]) -> dict[str, Any]:
    estimator = make_estimator({"model_dir": settings["model_dir"], "rules": None})
    processes = estimator._devices.processes
    _ = estimator._devices.placement
    mesh = Mesh(np.array(jax.devices()), ("d",))
    shape = (settings["megabytes"] * 1_000_000 // (ARRAYS * WIDTH * 4) // 8 * 8, WIDTH)
    where = {
        item: {f"a{number}": NamedSharding(mesh, spec) for number in range(start, ARRAYS, 2)}
        for start, (item, spec) in enumerate(SPECS.items())
    }
    state: dict[str, dict[str, jax.Array]] = {}
    if settings["save"]:
        for item, named in where.items():
            state[item] = {
                name: jax.make_array_from_callback(
                    shape, sharding, lambda index, name=name: values(int(name[1:]), index, shape)
                )
                for name, sharding in named.items()
            }
        jax.block_until_ready(state)
    before, read, verified = memory("VmRSS"), read_so_far(), 0
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    if settings["save"]:
        with CheckpointStore(settings["model_dir"], processes=processes) as store:
            store.save(1, CheckpointItems(clock=np.array([1, 0, 0, 0], np.uint32), **state)).wait()
    else:
        found = read_latest(settings["model_dir"], tuple(SPECS), processes=processes)
        assert found is not None
        verified = read_so_far() - read
        for item, named in where.items():
            state[item] = place(getattr(found.items, item), named, dict.fromkeys(named, np.dtype(np.float32)))
    took = {"peak": memory("VmHWM") - before, "read": read_so_far() - read, "verified": verified}
    if not settings["save"]:
        for named in state.values():
            for name, array in named.items():
                for shard in array.addressable_shards:
                    expected = values(int(name[1:]), shard.index, shape)
                    assert np.asarray(shard.data).tobytes() == expected.tobytes()
    shards = [shard.data.nbytes for item in state.values() for a in item.values() for shard in a.addressable_shards]
    return {**took, "shard": sum(shards), "array": 4 * shape[0] * shape[1], "index": processes.index}


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    result = main(given)
    Path(f"{given['out']}.{result['index']}.json").write_text(json.dumps(result))
