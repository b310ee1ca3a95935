"""`ec.export.load`: reads an export of any format."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator_core.errors import ExportError, PluginError
from estimator_core.export import LoadedExport, latest_export
from estimator_core.plugins import Plugins, default_plugins
from estimator_core.storage import ObjectMissingError, StorageGoneError, local_copy

_log = logging.getLogger("estimator_core")


def load(path: str | os.PathLike[str], *, plugins: Plugins | None = None) -> LoadedExport:
    """Reads an export.

    Args:
        path: an export directory, or a directory that contains exports (the newest is used). Or the URL of an export,
            which is copied to this machine until the process ends.
        plugins: the plugin registry. Default: the installed plugins.

    Returns:
        An object whose `signatures[name](**arrays)` returns numpy arrays by name.

    Raises:
        ExportError: there is no export, the export is damaged, or no installed format can read it.
    """
    registry = default_plugins() if plugins is None else plugins
    try:
        here = local_copy(path, registry)
    except (ObjectMissingError, StorageGoneError) as error:
        raise ExportError(f"{error} Correct the URL of the export.") from error
    candidates = [here]
    newest = latest_export(here)
    if newest is not None:
        candidates.append(Path(newest))
    formats, broken = _formats(registry)
    for directory in candidates:
        found = {name: known for name, known in formats.items() if known.recognizes(directory)}
        if found:
            return _one_of(found, path, registry).load(directory)
    if not here.exists():
        raise ExportError(f"There is no directory {path}. Correct the path of the export.")
    if broken:
        raise ExportError(f"{path} cannot be read by {list(formats)}; broken: {'; '.join(broken)}")
    if not formats:
        raise ExportError(
            f"{path} cannot be read: no export format is installed. {registry.explain('format', 'stablehlo')}"
        )
    raise ExportError(
        f"{path} contains no export that an installed format can read ({', '.join(formats)}). "
        "Give the time-stamped directory that export_saved_model returned."
    )


def _one_of(found: Mapping[str, Any], path: str | os.PathLike[str], registry: Plugins) -> Any:
    """Returns the format that reads an export. If several can, the one whose plugin declares "priority" or that the
    policy names.

    Raises:
        ExportError: several formats can read it, and nothing decides between them.
    """
    first = [name for name in registry.automatic("format") if name in found] if len(found) > 1 else list(found)
    if len(first) != 1:
        raise ExportError(
            f"{path} can be read by the formats {', '.join(found)}. Block the plugins of all but one by name."
        )
    if len(found) > 1:
        others = [name for name in found if name != first[0]]
        _log.info("export format %r is preferred to %s for %s", first[0], others, path)
    return found[first[0]]


def _formats(registry: Plugins) -> tuple[dict[str, Any], list[str]]:
    """Returns the formats that work here, and the reasons why others do not. A broken format does not prevent other
    exports from being read.
    """
    found: dict[str, Any] = {}
    broken: list[str] = []
    for name in registry.names("format"):
        try:
            found[name] = registry.make("format", name)
        except PluginError as error:
            _log.warning("export format %s is left out, because its plugin is broken: %s", name, error)
            broken.append(str(error))
    return found, broken
