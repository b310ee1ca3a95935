"""Lowers programs without the paths of their sources."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

import jax

_LIMIT = "jax_traceback_in_locations_limit"
#: The setting applies to the whole process. The lock prevents a thread from restoring an outdated value.
_lock = threading.RLock()


@contextmanager
def without_paths() -> Generator[None]:
    """Removes files and lines of the sources from programs that are lowered in the block. Operations keep their names.

    Example:
        >>> import jax
        >>> with without_paths():
        ...     lowered = jax.jit(lambda x: x + 1).lower(1.0)
        >>> ".py" in lowered.as_text(debug_info=True)
        False
    """
    with _lock:
        before = getattr(jax.config, _LIMIT)
        jax.config.update(_LIMIT, 0)
        try:
            yield
        finally:
            jax.config.update(_LIMIT, before)
