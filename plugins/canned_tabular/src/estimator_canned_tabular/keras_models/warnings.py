"""Keras' variables have numpy's old protocol: nothing that users of an Estimator could change."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Generator


@contextlib.contextmanager
def reading_keras() -> Generator[None]:
    """Leaves out numpy's warning about how Keras reads its own variables."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "__array__ implementation doesn't accept a copy", DeprecationWarning)
        yield
