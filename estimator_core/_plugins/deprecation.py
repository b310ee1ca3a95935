"""The common way to warn of names that will be removed."""

from __future__ import annotations

import inspect
import warnings
from types import FrameType


def warn_deprecated(what: str, *, instead: str) -> None:
    """Warns of a name that will be removed, at the line that uses it.

    The line is the first one outside of the core and of the package that calls this function.

    Args:
        what: the name, with its module or class.
        instead: the replacement, and when the name will be removed.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True, action="always") as told:
        ...     warn_deprecated("acme.old_loss", instead="acme.new_loss; it is removed with acme 2.0")
        >>> str(told[0].message)
        'acme.old_loss is deprecated: use acme.new_loss; it is removed with acme 2.0.'
    """
    frame, level = inspect.currentframe(), 1
    own = {"estimator_core", _package(frame and frame.f_back)} - {"__main__"}
    while frame is not None and frame.f_back is not None and _package(frame) in own:
        frame, level = frame.f_back, level + 1
    # FutureWarning is always shown to users, DeprecationWarning only in `__main__`.
    warnings.warn(f"{what} is deprecated: use {instead}.", FutureWarning, stacklevel=level)


def _package(frame: FrameType | None) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", "")).partition(".")[0]
