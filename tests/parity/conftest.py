"""Provides one compilation cache for all scenarios, because they compile the same few programs repeatedly."""

import jax
import pytest

SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


@pytest.fixture(scope="session")
def compilation_cache(tmp_path_factory):
    """Keeps compiled programs on disk while the parity tests run."""
    before = {name: getattr(jax.config, name) for name in (*SETTINGS, "jax_compilation_cache_dir")}
    for name, value in SETTINGS.items():
        jax.config.update(name, value)
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("compiled")))
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.fixture(scope="session")
def first_calls():
    """Stores the results of the first calls of scenarios, for the scenarios that begin alike."""
    return {}
