"""Replaces a server's models repeatedly: `python -m plugins.exporters.tests.attacks.reloading DIRECTORY COUNT`.

DIRECTORY holds one export. Prints JSON: by how many MB the process has grown since reload 20, and how many programs of
exports it holds at the end, while one version is served.
"""

import asyncio
import ctypes
import gc
import json
import sys
from pathlib import Path

import numpy as np
from jax import export

from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.repository import sources_of
from estimator_exporters.serving.server import new_engine

FIRST, SETTLED, SIZES = 1_700_000_000, 20, (1, 2)


def megabytes():
    """The megabytes that the process needs now.

    The allocator of glibc keeps freed memory for later: 6 to 14 MB, and more or less of it while other processes use
    the cores. It returns this memory first, because only what the process still needs can be a leak.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


async def grown(directory, count):
    (path,) = directory.iterdir()
    engine = new_engine(sources_of([f"m={directory}"]), SIZES, 1, Limits())
    await engine.repository.refresh()
    settled = 0.0
    for number in range(1, count + 1):
        version, model = engine.repository.get("m", None)
        assert version == path.name
        outputs = await model.infer({"x": np.ones((1, 3), np.float32)})
        assert outputs["logits"].shape == (1, 2)
        del model
        path = path.rename(directory / str(FIRST + number))
        await engine.repository.refresh()
        if number % SETTLED == 0:
            settled = settled or megabytes()
            print(f"{number} reloads: {megabytes() - settled:.1f} MB", flush=True)
    programs = sum(isinstance(one, export.Exported) for one in gc.get_objects())
    found = {"megabytes": megabytes() - settled, "programs": programs}
    await engine.repository.close()
    engine.decoding.close()
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(grown(Path(sys.argv[1]), int(sys.argv[2])))))
