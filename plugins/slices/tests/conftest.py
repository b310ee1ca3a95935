"""Makes the program that the tests evaluate importable by its name."""

import sys
from pathlib import Path

import jax
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module", autouse=True)
def _free_compiled_programs():
    """Frees the compiled programs of a module, which would otherwise stay until the end."""
    yield
    jax.clear_caches()
