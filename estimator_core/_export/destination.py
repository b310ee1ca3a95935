"""Where an export goes: a directory of this machine, or a URL, to which it is copied once it is checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from estimator_core._paths import is_url
from estimator_core._plugins import Plugins
from estimator_core._storage.opening import at_url


def destination(base: str, plugins: Plugins) -> Callable[[Callable[[Path], Path]], str]:
    """A function that takes what writes an export below a directory, and returns where the export lies in the end.

    Args:
        base: a path or a URL, in which the export gets its time-stamped name.
        plugins: where the storage of a URL is looked up.

    Raises:
        ArgumentError: no installed package serves the scheme; nothing has been written.

    Example:
        >>> place = destination("exports", Plugins())
        >>> place(lambda base: base / "1700000000")
        'exports/1700000000'
    """
    if not is_url(base):
        return lambda write: str(write(Path(base)))
    place: Callable[[Callable[[Path], Path]], str] = at_url(base, plugins).export_place(base.rstrip("/"), plugins)
    return place
