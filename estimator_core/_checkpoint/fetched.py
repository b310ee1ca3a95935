"""The checkpoint that a path or a URL names, on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from estimator_core._checkpoint.catalog import latest_checkpoint
from estimator_core._checkpoint.layout import CHECKPOINTS_DIR
from estimator_core._checkpoint.manifest import MANIFEST_FILE
from estimator_core._paths import is_url
from estimator_core._plugins import Plugins
from estimator_core._storage.opening import at_url
from estimator_core.errors import CheckpointNotFoundError


def fetched(location: str | os.PathLike[str], *, manifests: bool = False, plugins: Plugins | None = None) -> Path:
    """A path as it is; of a URL, a copy of what it names, which goes when the process ends.

    Args:
        location: a path; or the URL of a model_dir, or `<model_dir>/checkpoints/<step>`.
        manifests: brings the manifests of all checkpoints of a model_dir, without arrays, and not the newest one.
        plugins: where the storage of a URL is looked up; default: the installed ones.

    Returns:
        A checkpoint, or a directory with a directory `checkpoints`, whichever the URL names.

    Raises:
        ArgumentError: no installed package serves the scheme.
        CheckpointNotFoundError: no run has recorded such a checkpoint.
        CheckpointCorruptError: it is not what was recorded.
        StorageError, JournalError: it cannot be read.

    Example:
        >>> fetched("runs/one").as_posix()
        'runs/one'
    """
    text = os.fspath(location)
    if not is_url(text):
        return Path(location)
    copy: Path = at_url(text, plugins).fetched(text, plugins, manifests=manifests)
    return copy


def brought(location: str | None, plugins: Plugins) -> str | None:
    """A checkpoint on this machine, once for all that read it; None stays None."""
    return None if location is None else os.fspath(fetched(location, plugins=plugins))


def resolve_checkpoint(path: str | os.PathLike[str], plugins: Plugins | None = None) -> Path:
    """The checkpoint a user means: itself, or the newest one of a model_dir or of its `checkpoints` directory.

    Args:
        path: of either, or a URL: what it names is brought to this machine.
        plugins: where the storage of a URL is looked up; default: those in use.

    Raises:
        ArgumentError: the plugins do not serve the URL.
        CheckpointNotFoundError: there is none.
    """
    path = fetched(path, plugins=plugins)
    if (path / MANIFEST_FILE).exists():
        return path
    newest = latest_checkpoint(path.parent if path.name == CHECKPOINTS_DIR else path)
    if newest is not None:
        return Path(newest)
    raise CheckpointNotFoundError(
        f"There is no checkpoint in {path}. Name a checkpoint (<model_dir>/checkpoints/100) or a model_dir "
        "that a training run has saved to."
    )
