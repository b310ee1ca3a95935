"""What the tests of this package share."""

import jax
import pytest


@pytest.fixture(scope="module", autouse=True)
def _free_compiled_programs():
    """Operations compiled for a module's many small shapes would otherwise fill gigabytes by the end."""
    yield
    jax.clear_caches()
