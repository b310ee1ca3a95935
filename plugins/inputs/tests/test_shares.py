"""Processes with unequal shares of the rows: training ends with the longest share, and every row counts once."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from estimator_core.testing import run_processes
from plugins.inputs.tests.shares_worker import ROWS

pytestmark = pytest.mark.plugins  # needs estimator-cluster

WORKER = Path(__file__).with_name("shares_worker.py")


def launched(folder: Path, pattern: str, shard_by: str, batch_size: int, stops: tuple[int, ...] = ()) -> list[dict]:
    kept = {name: value for name, value in os.environ.items() if name not in ("TF_CONFIG", "XLA_FLAGS")}
    worker = [sys.executable, str(WORKER), pattern, shard_by, str(batch_size), str(folder)]
    for stop in (*stops, 0):
        done = run_processes([*worker, str(stop)], 2, env={**kept, "JAX_PLATFORMS": "cpu"}, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads((folder / f"seen.{process}.json").read_text()) for process in range(2)]


@pytest.mark.parametrize(
    ("shard_by", "sizes", "batch_size"),
    [
        pytest.param("files", (80, 21), 8, marks=pytest.mark.slow),  # ten batches and three
        pytest.param("files", (3, 98), 4, marks=pytest.mark.slow),
        pytest.param("rows", (101,), 10, marks=pytest.mark.slow),  # 51 rows and 50
        pytest.param("rows", (40, 61), 3, marks=pytest.mark.slow),
    ],
)
def test_every_row_is_used_once(tmp_path: Path, shard_by: str, sizes: tuple[int, ...], batch_size: int) -> None:
    write(tmp_path, sizes)
    for seen in launched(tmp_path, f"{tmp_path}/part-*.csv", shard_by, batch_size):
        assert seen["uses"] == [-2.0] * ROWS  # two epochs
        rows = np.arange(ROWS)
        assert seen["metrics"]["id"] == pytest.approx(rows.mean(), rel=1e-6)
        assert seen["metrics"]["square"] == pytest.approx((rows**2).mean(), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("stops", [(8,), (3, 9, 14)])  # of 20 batches, where the other share has 6
def test_every_row_is_used_once_though_the_run_stops_after_the_shorter_share(
    tmp_path: Path, stops: tuple[int, ...]
) -> None:
    write(tmp_path, (80, 21))
    for seen in launched(tmp_path, f"{tmp_path}/part-*.csv", "files", 8, stops):
        assert seen["uses"] == [-2.0] * ROWS


def write(folder: Path, sizes: tuple[int, ...]) -> None:
    """Writes files with these numbers of rows, which are numbered consecutively."""
    begin = 0
    for number, size in enumerate(sizes):
        lines = "".join(f"{row}\n" for row in range(begin, begin + size))
        (folder / f"part-{number}.csv").write_text("id\n" + lines)
        begin += size
    assert begin == ROWS
