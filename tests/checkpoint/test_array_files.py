"""Tests of the files of arrays that orbax writes and reads."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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


def test_few_arrays_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensorstore holds the bytes of the files of all arrays that it reads together, beside the results."""
    from orbax.checkpoint.type_handlers import NumpyHandler

    together: list[int] = []

    async def counted(self: Any, infos: Any, args: Any, *, deserialize: Any = NumpyHandler.deserialize) -> Any:
        together.append(len(infos))
        return await deserialize(self, infos, args)

    arrays = {f"x{i}": np.full((2,), i, np.float32) for i in range(40)}
    orbax_io.write_arrays(tmp_path / "arrays", {"variables": arrays})
    monkeypatch.setattr(NumpyHandler, "deserialize", counted)
    read = orbax_io.read_arrays(tmp_path / "arrays", {"variables": {path: a.dtype for path, a in arrays.items()}})
    assert sum(together) == len(arrays)
    assert max(together) <= 16
    assert {path: array.tolist() for path, array in read["variables"].items()} == {
        path: array.tolist() for path, array in arrays.items()
    }
