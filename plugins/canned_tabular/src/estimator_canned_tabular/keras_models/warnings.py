"""The warning about the old numpy protocol of Keras variables. Users of an Estimator cannot avoid its cause."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Generator


@contextlib.contextmanager
def reading_keras() -> Generator[None]:
    """Suppresses the warning of numpy about the way in which Keras reads its own variables."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "__array__ implementation doesn't accept a copy", DeprecationWarning)
        yield
