"""Lists the checkpoints of a model_dir and their places, and finds the checkpoint that a path or a URL names.

Names that start with a dot are unfinished work or its remains. The journal identifies checkpoints by the digest of
their manifest, and not by the name of the directory. In a model_dir without a journal, copied by hand or written by an
older release, the manifests decide.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

from estimator_core._checkpoint.manifest import MANIFEST_FILE, USE_ANOTHER, read_manifest
from estimator_core._files import expanded, is_url, located, read_regular
from estimator_core._journal.entries import Saved
from estimator_core._journal.reading import lineage_of, read_lineage
from estimator_core._plugins import Plugins
from estimator_core._storage.contract import StorageGoneError
from estimator_core.errors import CheckpointCorruptError, CheckpointError, CheckpointNotFoundError

CHECKPOINTS_DIR = "checkpoints"
ARRAYS_DIR = "arrays"
INPUT_FILE = "input.json"
HOOKS_FILE = "hooks.json"
#: Prefixes of directories that are not checkpoints: being written, being deleted, or moved aside while a replacement
#: takes the name.
WRITING, DELETING, REPLACED = ".writing-", ".deleting-", ".replaced-"
#: The prefix of a checkpoint that was found damaged and is kept for examination.
DAMAGED = "damaged-"
#: The prefix of a directory that was in the place of a checkpoint although no run had saved it there.
UNNAMED = "unnamed-"
_WORK = re.compile(r"\.(writing|deleting|replaced)-(?P<step>\d+)-e(?P<epoch>\d{6})-[0-9a-f]{8}")


def checkpoints_dir(model_dir: str | os.PathLike[str]) -> Path:
    """Returns the directory that holds the checkpoints of a model_dir, with `~` expanded."""
    return Path(os.path.expanduser(model_dir)) / CHECKPOINTS_DIR


def checkpoint_path(model_dir: str | os.PathLike[str], step: int) -> str:
    """Returns the path of the checkpoint of a step, before and after it is saved."""
    return str(checkpoints_dir(model_dir) / str(step))


def being_written(model_dir: str | os.PathLike[str], step: int) -> bool:
    """Returns whether the checkpoint of a step is being written, so that its directory does not have its final name
    yet.

    Example:
        >>> being_written("a/directory/that/does/not/exist", 10)
        False
    """
    return any(checkpoints_dir(model_dir).glob(f"{WRITING}{step}-*"))


def committed_steps(root: Path) -> list[int]:
    """Returns the steps of the committed checkpoints in a checkpoints directory, ascending."""
    return [step for step in named_steps(root) if (root / str(step) / MANIFEST_FILE).is_file()]


def named_steps(root: Path) -> list[int]:
    """Returns the steps that have a directory, ascending: committed checkpoints, and those that have lost their
    manifest.
    """
    try:
        with os.scandir(root) as entries:
            return sorted(int(entry.name) for entry in entries if is_step(entry.name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def checkpoint_step(path: str | os.PathLike[str]) -> int:
    """Returns the global step of a checkpoint, from its name.

    Raises:
        CheckpointNotFoundError: the name is not that of a checkpoint.
    """
    name = Path(path).name
    if match := _WORK.fullmatch(name):
        return int(match["step"])
    if not is_step(name):
        raise CheckpointNotFoundError(
            f"{path} is not a checkpoint: its name must be a step, such as <model_dir>/checkpoints/100."
        )
    return int(name)


def work_name(kind: str, step: int, epoch: int) -> str:
    """Returns a unique name for a directory that becomes a checkpoint, or that ceases to be one.

    Args:
        kind: `WRITING`, `DELETING` or `REPLACED`.
        step: the step of the checkpoint.
        epoch: the epoch of the run that names it.
    """
    return f"{kind}{step}-e{epoch:06d}-{uuid.uuid4().hex[:8]}"


def work_epoch(name: str) -> int | None:
    """Returns the epoch in the name of unfinished work: 0 if a release without epochs named it, None for any other
    name.

    Example:
        >>> work_epoch(".writing-5-e000003-0123abcd"), work_epoch(".deleting-5"), work_epoch("5")
        (3, 0, None)
    """
    if not name.startswith((WRITING, DELETING, REPLACED)):
        return None
    match = _WORK.fullmatch(name)
    return int(match["epoch"]) if match else 0


def model_dir_of(path: Path) -> Path:
    """Returns the model_dir of its directory `checkpoints`, or the path itself. A model_dir may also have that name."""
    return path.parent if path.name == CHECKPOINTS_DIR and not checkpoints_dir(path).is_dir() else path


def is_step(name: str) -> bool:
    """Returns whether a name is a checkpoint's name."""
    return name.isascii() and name.isdigit() and str(int(name)) == name


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A checkpoint that should exist.

    Args:
        step: the step of the checkpoint.
        path: the place of the checkpoint, or the place where it should be.
        problem: the fault, determined without reading the arrays; "" if there is none.
        missing: whether nothing exists in this place.
    """

    step: int
    path: Path
    problem: str = ""
    missing: bool = False


def listed(model_dir: str | os.PathLike[str]) -> list[Listed]:
    """Returns the checkpoints that should exist, oldest step first."""
    root = checkpoints_dir(model_dir)
    lineage = lineage_of(root.parent)
    if lineage is None:
        found = (_by_manifest(root / str(step), step) for step in named_steps(root))
        return [one for one in found if one is not None]
    return [_by_journal(root, saved) for _, saved in sorted(lineage.saved.items())]


def unnamed(model_dir: str | os.PathLike[str]) -> list[Path]:
    """Returns directories with the name of a checkpoint that are not checkpoints: copies, or unknown to the journal."""
    root = checkpoints_dir(model_dir)
    known = {one.path for one in listed(model_dir)}
    return [path for step in named_steps(root) if (path := root / str(step)) not in known]


def all_checkpoints(model_dir: str | os.PathLike[str]) -> list[str]:
    """Returns the paths of the valid checkpoints, oldest step first. Their arrays are not checked.

    For a model_dir at a URL, these are the URLs of the checkpoints in its journal.
    """
    url = located(model_dir)
    if not is_url(url):
        return [str(one.path) for one in listed(model_dir) if not one.problem]
    from estimator_core._storage.opening import open_storage

    try:
        with contextlib.closing(open_storage(url, make=False)) as storage:
            lineage = read_lineage(storage)
    except StorageGoneError:
        return []
    return [f"{url.rstrip('/')}/{CHECKPOINTS_DIR}/{step}" for step in sorted(lineage.saved)]


def latest_checkpoint(model_dir: str | os.PathLike[str]) -> str | None:
    """Returns the path of the newest valid checkpoint with an intact manifest; None without one.

    For a model_dir at a URL, this is the URL of the newest checkpoint in its journal.

    Example:
        >>> latest_checkpoint("a/directory/that/does/not/exist") is None
        True
    """
    if is_url(located(model_dir)):
        return next(reversed(all_checkpoints(model_dir)), None)
    root = checkpoints_dir(model_dir)
    lineage = lineage_of(root.parent)
    if lineage is None:
        found = (_by_manifest(root / str(step), step) for step in reversed(named_steps(root)))
    else:
        found = (_by_journal(root, saved) for _, saved in sorted(lineage.saved.items(), reverse=True))
    return next((str(one.path) for one in found if one is not None and not one.problem), None)


def check_named(path: Path) -> None:
    """Verifies that a directory is the checkpoint that the journal names for its step, if there is a journal.

    Raises:
        CheckpointCorruptError: the journal names another checkpoint or no checkpoint for the step.
    """
    lineage = lineage_of(path.parents[1])
    if lineage is None:
        return
    saved = lineage.saved.get(checkpoint_step(path))
    if saved is None or manifest_digest(path) != saved.digest:
        raise CheckpointCorruptError(f"The checkpoint {path} is damaged: {_NOT_SAVED} {USE_ANOTHER}")


def manifest_digest(directory: Path) -> str | None:
    """Returns the digest by which the journal identifies a checkpoint; None if no manifest can be read."""
    try:
        if directory.is_symlink():
            return None
        return hashlib.sha256(read_regular(directory / MANIFEST_FILE)).hexdigest()
    except OSError:
        return None


def where_is(root: Path, saved: Saved, *, look_only: bool = False) -> Path | None:
    """Returns the place of the data of a checkpoint; None if the data no longer exists.

    A process may be killed after it records a checkpoint and before it names the directory. The next process that looks
    for the checkpoint then renames it. Nothing else uses this place, so a second rename is harmless.

    Args:
        root: the checkpoints directory.
        saved: the record of the checkpoint in the journal.
        look_only: whether to leave the directory where it is, without a rename.

    Raises:
        CheckpointError: the checkpoint was saved through a URL.
    """
    named, placed = root / str(saved.step), root.parent / saved.place
    for _ in range(2):  # another process may rename it meanwhile
        if manifest_digest(named) == saved.digest:
            return named
        if not saved.place.startswith(f"{CHECKPOINTS_DIR}/"):  # processes that use the URL look for it there
            raise CheckpointError(
                f"{root.parent} was written through a URL, so no path opens it. Name it file://{root.parent.absolute()}."
            )
        if not look_only and manifest_digest(placed) == saved.digest:
            with contextlib.suppress(OSError):
                placed.rename(named)
    if manifest_digest(placed) == saved.digest:
        return placed
    return next((path for path in _under_way(root, saved.step) if manifest_digest(path) == saved.digest), None)


_NOT_SAVED = "its manifest differs from what was saved."


def _under_way(root: Path, step: int) -> list[Path]:
    kinds = (WRITING, DELETING, REPLACED)
    return [path for kind in kinds for path in sorted(root.glob(f"{kind}{step}-e*"))]


def _by_journal(root: Path, saved: Saved) -> Listed:
    path = where_is(root, saved)
    if path is not None:
        return Listed(step=saved.step, path=path)
    named = root / str(saved.step)
    missing = not os.path.lexists(named)
    problem = "it does not exist" if missing else _NOT_SAVED
    return Listed(step=saved.step, path=named, problem=problem, missing=missing)


def _by_manifest(path: Path, step: int) -> Listed | None:
    """Describes a directory by its manifest; None for a directory that is a copy of the checkpoint of another step."""
    try:
        found = read_manifest(path).step
    except (CheckpointCorruptError, CheckpointNotFoundError) as error:
        return Listed(step=step, path=path, problem=str(error))
    except (CheckpointError, OSError):  # a newer format, or no permission, which reading it reports
        return Listed(step=step, path=path)
    return Listed(step=step, path=path) if found == step else None


def fetched(location: str | os.PathLike[str], *, manifests: bool = False, plugins: Plugins | None = None) -> Path:
    """Returns a path, with `~` expanded. For a URL, it is a local copy, which is removed when the process ends.

    Args:
        location: a path, or the URL of a model_dir or of `<model_dir>/checkpoints/<step>`.
        manifests: whether to copy the manifests of all checkpoints of a model_dir, without arrays, instead of the
            newest checkpoint.
        plugins: the registry that provides the storage of a URL. Default: the installed plugins.

    Returns:
        The checkpoint, or a directory with a directory `checkpoints`, depending on the location.

    Raises:
        ArgumentError: no installed package supports the scheme.
        CheckpointNotFoundError: no run has recorded such a checkpoint.
        CheckpointCorruptError: the checkpoint differs from the record.
        StorageError, JournalError: the URL cannot be read.

    Example:
        >>> fetched("runs/one").as_posix()
        'runs/one'
    """
    text = expanded(os.fspath(location))
    if not is_url(text):
        return Path(text)
    from estimator_core._storage.opening import at_url

    copy: Path = at_url(text, plugins).fetched(text, plugins, manifests=manifests)
    return copy


def brought(location: str | None, plugins: Plugins) -> str | None:
    """Returns a checkpoint on this machine, copied once for all of its readers. None stays None."""
    return None if location is None else os.fspath(fetched(location, plugins=plugins))


def resolve_checkpoint(path: str | os.PathLike[str], plugins: Plugins | None = None) -> Path:
    """Returns the checkpoint at a path: the checkpoint itself, or the newest one of a model_dir or of its `checkpoints`
    directory.

    Args:
        path: the path, or a URL, whose contents are copied to this machine.
        plugins: the registry that provides the storage of a URL. Default: the plugins in use.

    Raises:
        ArgumentError: the plugins do not support the URL.
        CheckpointNotFoundError: the path has no checkpoint.
    """
    path = fetched(path, plugins=plugins)
    if (path / MANIFEST_FILE).exists():
        return path
    newest = latest_checkpoint(model_dir_of(path))
    if newest is not None:
        return Path(newest)
    exports = _exports_in(path)
    if exports:
        raise CheckpointNotFoundError(
            f"There is no checkpoint in {path}: it is a directory of {len(exports)} exports. Name one of them, such as "
            f"the newest, {path / exports[-1]}, or the model_dir that they come from."
        )
    raise CheckpointNotFoundError(
        f"There is no checkpoint in {path}. Name a checkpoint (<model_dir>/checkpoints/100) or a model_dir "
        "that a training run has saved to."
    )


def _exports_in(path: Path) -> list[str]:
    """Returns the names of the exports in a directory, the newest last. The format of an export has a name."""
    names = [place.name for place in path.iterdir() if place.name.isdecimal()] if path.is_dir() else []
    found: list[str] = []
    for name in names:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if isinstance(json.loads((path / name / MANIFEST_FILE).read_bytes())["format"], str):
                found.append(name)
    return sorted(found, key=int)
