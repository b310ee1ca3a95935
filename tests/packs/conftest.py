"""Fixtures of the tests of packs. The tests of this folder and the processes they start import its modules by name."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cuts import make_chunks_small


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes chunks of a few elements, so that small arrays have many."""
    make_chunks_small(monkeypatch)
