"""Tests of real processes on a real directory, killed at their n-th change or frozen while another takes over."""

import sys
from pathlib import Path

import pytest

from tests.journal.real_processes import trials


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
def test_twenty_kills_and_freezes(tmp_path: Path):
    counts = trials(tmp_path, 20, seed=18)
    print(f"\n{dict(counts)}")
    assert counts["acknowledged"] > 0
    assert counts["frozen, superseded, and named its successor"] > 0
    assert sum(counts[f"killed {when} a change"] for when in ("before", "after")) > 10
