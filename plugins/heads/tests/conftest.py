"""What the tests of this package share."""

import jax
import numpy as np
import pytest


@pytest.fixture(scope="module", autouse=True)
def _free_compiled_programs():
    """Operations compiled for a module's many small shapes would otherwise fill gigabytes by the end."""
    yield
    jax.clear_caches()


@pytest.fixture(autouse=True)
def _draws_of_its_own(request):
    """A test draws the same numbers alone, in any order and in any worker."""
    if hasattr(request.module, "rng"):
        request.module.rng = np.random.default_rng(7)
