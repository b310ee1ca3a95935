"""The environment of a process: its packages, which code each of them is, and where it came from."""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from estimator_core.plugins import code_hash

_GROUP = "estimator.plugins"


def environment() -> dict[str, Any]:
    """Python and all installed packages: version and origin; of those that this process uses, the hash of the code."""
    found = {_name(one): one for one in metadata.distributions() if one.metadata["Name"]}
    used = _used(found)
    packages = {
        name: {
            "version": one.version,
            **({"origin": origin} if (origin := _origin(one)) else {}),
            **({"code": code_hash(one, _modules(name, one))} if name in used else {}),
        }
        for name, one in sorted(found.items())
    }
    return {"python": platform.python_version(), "implementation": platform.python_implementation(), **packages}


def folders_of_packages() -> tuple[Path, ...]:
    """The folders of editable packages that this process uses: their code is named as the packages'."""
    folders: list[Path] = []
    for one in metadata.distributions():
        if one.metadata["Name"] and _editable(one):
            modules = (sys.modules.get(name) for name in _modules(_name(one), one))
            folders += [
                Path(path).resolve() for module in modules if module for path in getattr(module, "__path__", ())
            ]
    return tuple(folders)


def _used(found: Mapping[str, metadata.Distribution]) -> set[str]:
    loaded = {name.partition(".")[0] for name in sys.modules.copy()}
    of_wheels = {
        _plain(name)
        for module, names in metadata.packages_distributions().items()
        if module in loaded
        for name in names
    }
    # The RECORD of an editable package names no module.
    of_folders = {
        name for name, one in found.items() if _editable(one) and any(m in loaded for m in _modules(name, one))
    }
    return of_wheels | of_folders


def _modules(name: str, distribution: metadata.Distribution) -> list[str]:
    """The modules of a package, as its name and its entry points say."""
    points = (point.module.partition(".")[0] for point in distribution.entry_points if point.group == _GROUP)
    return [*dict.fromkeys([name.replace("-", "_"), *points])]


def _origin(distribution: metadata.Distribution) -> dict[str, Any]:
    """Where a package was installed from; empty for an index."""
    return json.loads(distribution.read_text("direct_url.json") or "{}")


def _editable(distribution: metadata.Distribution) -> bool:
    return bool(_origin(distribution).get("dir_info", {}).get("editable"))


def _name(distribution: metadata.Distribution) -> str:
    return _plain(distribution.metadata["Name"])


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(packages: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a requirements file that installs the packages of a record again.

    Example:
        >>> list(requirements({"python": "3.11.9", "numpy": {"version": "2.3.0"}}))
        ['numpy==2.3.0']
    """
    for name, one in packages.items():
        if not isinstance(one, Mapping):
            continue
        origin: Any = one.get("origin", {})
        url = str(origin.get("url", ""))
        if origin.get("dir_info", {}).get("editable"):
            yield f"-e {url.removeprefix('file://')}"
        elif "vcs_info" in origin:
            yield f"{name} @ {origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
        elif url:
            yield f"{name} @ {url}"
        else:
            yield f"{name}=={one['version']}"
