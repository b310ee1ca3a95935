"""Programs that do not say where their sources lie."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

import jax

_LIMIT = "jax_traceback_in_locations_limit"
#: The setting is one of the whole process: who enters last must not put back what another has set.
_lock = threading.RLock()


@contextmanager
def without_paths() -> Generator[None]:
    """What is lowered inside names its operations, but no file and line of the sources.

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
