"""The environment of a process: its packages, the hashes of their code, and their origins."""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from estimator_core.plugins import code_hash

_GROUP = "estimator.plugins"


@dataclass(frozen=True, kw_only=True)
class Package:
    """An installed package.

    Args:
        name: the name in lower case, with hyphens.
        version: the installed version.
        distribution: the distribution, which lists its files.
        origin: the source of the installation; empty for an index.
        modules: the names of its top-level modules.
    """

    name: str
    version: str
    distribution: metadata.Distribution
    origin: Mapping[str, Any]
    modules: tuple[str, ...]

    @property
    def editable(self) -> bool:
        """Whether its code is in a directory of sources."""
        return bool(self.origin.get("dir_info", {}).get("editable"))


def installed() -> list[Package]:
    """Returns all packages of this environment by name. Of two with one name, the first on the path counts."""
    found: dict[str, Package] = {}
    for one in metadata.distributions():
        about = one.metadata
        if about["Name"]:
            package = _package(_plain(about["Name"]), about["Version"], one)
            found.setdefault(package.name, package)
    return [found[name] for name in sorted(found)]


def environment(packages: Sequence[Package]) -> dict[str, Any]:
    """Returns Python and all packages with version and origin, and the hash of the code of those in use."""
    loaded = {name.partition(".")[0] for name in sys.modules.copy()}
    described: dict[str, Any] = {}
    for one in packages:
        used = any(module in loaded for module in one.modules)
        described[one.name] = {
            "version": one.version,
            **({"origin": dict(one.origin)} if one.origin else {}),
            **({"code": code_hash(one.distribution, one.modules)} if used else {}),
        }
    return {"python": platform.python_version(), "implementation": platform.python_implementation(), **described}


def folders_of(packages: Sequence[Package]) -> tuple[Path, ...]:
    """Returns the folders of editable packages that this process uses. Their code counts as code of packages."""
    modules = (sys.modules.get(name) for one in packages if one.editable for name in one.modules)
    return tuple(Path(path).resolve() for module in modules if module for path in getattr(module, "__path__", ()))


def _package(name: str, version: str, distribution: metadata.Distribution) -> Package:
    origin: dict[str, Any] = json.loads(distribution.read_text("direct_url.json") or "{}")
    # The RECORD of an editable package names no module, but its name and its entry points do.
    points = (point.module.partition(".")[0] for point in distribution.entry_points if point.group == _GROUP)
    modules = dict.fromkeys([name.replace("-", "_"), *points])
    if not origin.get("dir_info", {}).get("editable"):
        listed = (distribution.read_text("RECORD") or "").splitlines()
        modules |= dict.fromkeys(line.partition(",")[0].partition("/")[0].removesuffix(".py") for line in listed)
    return Package(name=name, version=version, distribution=distribution, origin=origin, modules=tuple(modules))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(packages: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines of a requirements file that installs the packages of a record again.

    Example:
        >>> list(requirements({"python": "3.11.9", "numpy": {"version": "2.3.0"}}))
        ['numpy==2.3.0']
        >>> origin = {"url": "https://host/a", "archive_info": {}, "subdirectory": "core"}
        >>> list(requirements({"a": {"version": "1", "origin": origin}}))
        ['a @ https://host/a#subdirectory=core']
    """
    for name, one in packages.items():
        if not isinstance(one, Mapping):
            continue
        origin: Any = one.get("origin", {})
        url = str(origin.get("url", ""))
        part = f"#subdirectory={origin['subdirectory']}" if origin.get("subdirectory") else ""
        if origin.get("dir_info", {}).get("editable"):
            path = PurePosixPath(unquote(url.removeprefix("file://")), str(origin.get("subdirectory", "")))
            yield f"-e {path}"
        elif "vcs_info" in origin:
            yield f"{name} @ {origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}{part}"
        elif url:
            yield f"{name} @ {url}{part}"
        else:
            yield f"{name}=={one['version']}"
