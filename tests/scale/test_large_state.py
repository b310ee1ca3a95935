"""Tests of a state of 2 GB over four processes: the bytes that each holds and reads at the save and at restores onto
other numbers of processes.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from scale_runs import launch

pytestmark = [pytest.mark.slow, pytest.mark.plugins]
MEGABYTES = int(os.environ.get("LARGE_STATE_MEGABYTES", "2000"))


def large(out: Path, model_dir: Path, count: int, *, save: bool) -> list[dict[str, Any]]:
    settings = {"model_dir": str(model_dir), "megabytes": MEGABYTES, "save": save, "out": str(out)}
    done = launch("large_worker.py", count, settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(Path(f"{out}.{process}.json").read_text()) for process in range(count)]


def in_bound(results: list[dict[str, Any]], what: str) -> None:
    """Checks the bound: 1.2 times the shard plus one array. On CPU this includes the restored shard itself."""
    for one in results:
        numbers = {name: f"{size / 1e6:,.0f} MB" for name, size in one.items() if name != "index"}
        print(f"{what}, process {one['index']} of {len(results)}: {numbers}")
        assert one["peak"] <= 1.2 * one["shard"] + one["array"]


@pytest.mark.timeout(900)
def test_memory_and_bytes_of_each_process(tmp_path: Path) -> None:
    model_dir = tmp_path / "run"
    in_bound(large(tmp_path / "save", model_dir, 4, save=True), "save")
    packs = sorted((model_dir / "checkpoints" / "1").glob("*.pack"))
    assert len(packs) == 4
    whole = sum(pack.stat().st_size for pack in packs)
    for count in (2, 8, 4):
        results = large(tmp_path / f"restore_{count}", model_dir, count, save=False)
        in_bound(results, "restore")
        for one in results:
            assert one["verified"] <= 1.02 * whole / count + (16 << 20)
    # With the sharding of the save each process reads its own part twice: once to verify it, once to place it.
    assert all(one["read"] - one["verified"] <= 1.02 * one["shard"] + (16 << 20) for one in results)
