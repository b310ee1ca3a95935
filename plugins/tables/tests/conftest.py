"""Programs of the tests are imported by their names."""

import sys
from pathlib import Path

import jax
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module", autouse=True)
def _free_compiled_programs():
    """Programs compiled for a module's many shapes would otherwise stay until the end."""
    yield
    jax.clear_caches()
