"""Tests of the files of arrays that orbax writes and reads."""

import tracemalloc
from pathlib import Path

import numpy as np

from estimator_core._checkpoint import orbax_io

MIB = 1024 * 1024


def test_a_write_does_not_copy_the_arrays(tmp_path: Path) -> None:
    orbax_io.write_arrays(tmp_path / "first", {"variables": {"x": np.zeros(3, np.float32)}})  # imports orbax
    arrays = {f"x{i}": np.full((MIB,), i, np.float32) for i in range(8)}  # 32 MiB
    tracemalloc.start()
    try:
        orbax_io.write_arrays(tmp_path / "second", {"variables": arrays})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * MIB
    wanted = {"variables": {path: array.dtype for path, array in arrays.items()}}
    read = orbax_io.read_arrays(tmp_path / "second", wanted)["variables"]
    assert {path: array.tobytes() for path, array in read.items()} == {
        path: array.tobytes() for path, array in arrays.items()
    }
