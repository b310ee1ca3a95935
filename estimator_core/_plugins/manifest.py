"""Compares the plugins in use with those of a checkpoint or export, or of a lock file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from estimator_core._plugins.discovery import CODE
from estimator_core.errors import PluginError


def compare_versions(
    recorded: Iterable[Mapping[str, str]], present: Iterable[Mapping[str, str]], *, what: str = "this checkpoint"
) -> list[str]:
    """Returns one line for each plugin that is missing, changed or new.

    Args:
        recorded: `Plugins.versions()` from the manifest. Without hashes, as written by older cores, versions are
            compared.
        present: `Plugins.versions()` now.
        what: the name of the object that was made with them.

    Example:
        >>> compare_versions([{"distribution": "acme", "version": "1.0"}], [])
        ['this checkpoint was made with acme 1.0, which is not in use here: pip install acme==1.0']
    """
    now, then = ({row["distribution"]: row for row in rows} for rows in (present, recorded))
    lines = [line for name, row in then.items() for line in _changed(name, row, now.get(name), what)]
    added = [row for name, row in now.items() if then and name not in then]
    return lines + [f"{what} was made without {_label(row)}, which is in use here" for row in added]


def require_locked(file: str, present: Iterable[Mapping[str, str]]) -> None:
    """Refuses plugins that are not in a lock file, or whose code differs from it.

    Raises:
        PluginError: the file does not exist, or there are differences. The message has a line for each.
    """
    try:
        listed = json.loads(Path(file).read_text(encoding="utf-8"))["plugins"]
        rows = [{name: str(row[name]) for name in ("distribution", "version", "hash")} for row in listed]
    except (OSError, ValueError, LookupError, TypeError) as error:
        cure = f"{_command(file)} writes one"
        raise PluginError(f"plugins are locked by {file}, which cannot be read ({error}); {cure}") from error
    found = list(present)
    lines = compare_versions(rows, found, what="the lock")
    lines += [f"{_label(row)} has no files, so its code cannot be verified" for row in found if not row["hash"]]
    if lines:
        cure = f"Install the plugins that it names, or write it again with {_command(file)}."
        raise PluginError("\n  ".join([f"plugins are locked by {file}, and these differ:", *lines]) + f"\n{cure}")


def _command(file: str) -> str:
    return f"`estimator plugins lock {shlex.quote(file)}`"


def _changed(name: str, then: Mapping[str, str], now: Mapping[str, str] | None, what: str) -> list[str]:
    made = f"{what} was made with {_label(then)}"
    if now is None:
        cure = "" if name.startswith(CODE) else f": pip install {name}=={then['version']}"
        return [f"{made}, which is not in use here{cure}"]
    if now["version"] != then["version"]:
        return [f"{made}; here it is {now['version']}"]
    before, after = then.get("hash", ""), now.get("hash", "")
    if before and before != after:
        return [f"{made}; here its code differs ({before[:15]} then, {after[:15] or 'unknown'} here)"]
    return []


def _label(row: Mapping[str, str]) -> str:
    name, version = row["distribution"], row["version"]
    return f"the plugin {name.removeprefix(CODE)} given in code" if name.startswith(CODE) else f"{name} {version}"
