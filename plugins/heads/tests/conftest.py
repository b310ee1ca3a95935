"""The shared fixtures of the tests of this package."""

import jax
import numpy as np
import pytest


@pytest.fixture(scope="module", autouse=True)
def _free_compiled_programs():
    """Frees compiled operations after each module. Otherwise the many small shapes would fill gigabytes by the end."""
    yield
    jax.clear_caches()


@pytest.fixture(autouse=True)
def _draws_of_its_own(request):
    """Seeds the random numbers, so that a test draws the same numbers alone, in any order and in any worker."""
    if hasattr(request.module, "rng"):
        request.module.rng = np.random.default_rng(7)
