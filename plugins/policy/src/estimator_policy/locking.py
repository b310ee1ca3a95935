"""Writes lock files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from estimator_core.storage import draft_of

FORMAT = 1


def may_be_replaced(file: Path) -> bool:
    """Returns whether the file does not exist, or holds only a lock."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError:
        return True  # a failed write raises the error later
    except ValueError:
        return False
    return isinstance(found, dict) and {"format", "plugins"} <= found.keys()


def write_lock(file: str | Path, plugins: Iterable[Mapping[str, str]]) -> None:
    """Records the plugins that runs may have, for `estimator --locked`, `RunConfig(plugins_lock=...)` or a policy.

    Args:
        file: the file to write. An existing file is replaced atomically.
        plugins: the result of `Plugins.versions()`, or the "plugins" of the manifest of a checkpoint or export.

    Example:
        >>> import tempfile
        >>> from estimator_core.plugins import Plugins
        >>> file = Path(tempfile.mkdtemp()) / "plugins.lock"
        >>> write_lock(file, Plugins(autoload=False).versions())
        >>> Plugins(autoload=False, lock=str(file)).names("backend")
        ('cpu',)
    """
    rows = [{name: row[name] for name in ("distribution", "version", "hash")} for row in plugins]
    path = Path(file).resolve()
    with draft_of(path) as draft:
        draft.write_text(json.dumps({"format": FORMAT, "plugins": rows}, indent=2) + "\n", encoding="utf-8")
