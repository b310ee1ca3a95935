"""Pieces of arrays are written into one database: few files and no rewriting, however many arrays there are."""

from pathlib import Path

import numpy as np

from estimator_core._checkpoint.tensorstore_io import read_pieces, write_pieces


def test_many_arrays_take_few_files_and_their_own_bytes(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    arrays = {f"layer_{index}": generator.random((25, 100), np.float32) for index in range(50)}
    write_pieces(tmp_path / "pieces", {"variables": arrays})
    files = [path for path in (tmp_path / "pieces").rglob("*") if path.is_file()]
    assert len(files) < 10
    assert sum(path.stat().st_size for path in files) < 1.2 * sum(array.nbytes for array in arrays.values())
    read = read_pieces(tmp_path / "pieces", {"variables": arrays})["variables"]
    assert read.keys() == arrays.keys()
    assert all(np.array_equal(read[name], arrays[name]) for name in arrays)
