"""Finds packages that were replaced since a moment, from the files of their installer."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence

_SUFFIX = ".dist-info"


def installed_packages(folders: Sequence[str] | None = None) -> dict[str, int]:
    """Returns the installed packages as `name-version`, each with the time of its installation in nanoseconds.

    Args:
        folders: the folders to search. None: those of `sys.path`.

    Example:
        >>> any(name.startswith("estimator_core-") for name in installed_packages())
        True
    """
    found: dict[str, int] = {}
    for folder in sys.path if folders is None else folders:
        with contextlib.suppress(OSError), os.scandir(folder or ".") as entries:
            for entry in entries:
                if entry.name.endswith(_SUFFIX):
                    with contextlib.suppress(OSError):
                        found.setdefault(entry.name.removesuffix(_SUFFIX), _installed(entry.path))
    return found


def replaced_packages(before: Mapping[str, int], folders: Sequence[str] | None = None) -> list[str]:
    """Returns the packages that were installed, removed or reinstalled since a moment.

    Args:
        before: the result of `installed_packages` at that moment.
        folders: the same argument as for `installed_packages`.

    Example:
        >>> replaced_packages({**installed_packages(), "acme-1.0": 0})
        ['acme 1.0 was removed']
    """
    now = installed_packages(folders)
    gone = {name.partition("-")[0]: name.partition("-")[2] for name in before if name not in now}
    lines: list[str] = []
    for name, installed in now.items():
        package, _, version = name.partition("-")
        if name not in before:
            earlier = gone.pop(package, None)
            lines.append(f"{package} {version} was installed" + (f" in place of {earlier}" if earlier else ""))
        elif installed != before[name]:
            lines.append(f"{package} {version} was installed again")
    return sorted([*lines, *(f"{package} {version} was removed" for package, version in gone.items())])


def _installed(path: str) -> int:
    """Returns the time of the list of files, which every installer writes last, or else the time of the folder."""
    record = os.path.join(path, "RECORD")
    return os.stat(record if os.path.exists(record) else path).st_mtime_ns
