"""Makes the programs of the tests importable by their names."""

import sys
from pathlib import Path

import jax
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module", autouse=True)
def _free_compiled_programs():
    """Frees the compiled programs after each module. Otherwise those of many shapes would stay until the end."""
    yield
    jax.clear_caches()
