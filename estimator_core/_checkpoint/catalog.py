"""Which checkpoints of a model_dir count.

The journal identifies them by the digest of their manifest. The name of a directory means nothing. In a model_dir
without a journal, copied by hand or written by an older release, the manifests decide.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from estimator_core._checkpoint import layout
from estimator_core._checkpoint.files import read_regular
from estimator_core._checkpoint.manifest import MANIFEST_FILE, USE_ANOTHER, read_manifest
from estimator_core._journal import Saved, lineage_of
from estimator_core.errors import CheckpointCorruptError, CheckpointError, CheckpointNotFoundError


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A checkpoint that should be there.

    Args:
        step: the step of the checkpoint.
        path: where it is, or should be.
        problem: what is wrong with it, without a look at its arrays; "" if nothing is wrong.
        missing: whether nothing is there at all.
    """

    step: int
    path: Path
    problem: str = ""
    missing: bool = False


def listed(model_dir: str | os.PathLike[str]) -> list[Listed]:
    """The checkpoints that should be there, oldest step first."""
    root = layout.checkpoints_dir(model_dir)
    lineage = lineage_of(model_dir)
    if lineage is None:
        found = (_by_manifest(root / str(step), step) for step in layout.named_steps(root))
        return [one for one in found if one is not None]
    return [_by_journal(root, saved) for _, saved in sorted(lineage.saved.items())]


def unnamed(model_dir: str | os.PathLike[str]) -> list[Path]:
    """Directories with the name of a checkpoint that are not checkpoints: copies, or unknown to the journal."""
    root = layout.checkpoints_dir(model_dir)
    known = {one.path for one in listed(model_dir)}
    return [path for step in layout.named_steps(root) if (path := root / str(step)) not in known]


def all_checkpoints(model_dir: str | os.PathLike[str]) -> list[str]:
    """Paths of the checkpoints that count, oldest step first. Their arrays are not checked."""
    return [str(one.path) for one in listed(model_dir) if not one.problem]


def latest_checkpoint(model_dir: str | os.PathLike[str]) -> str | None:
    """The path of the newest checkpoint that counts and whose manifest is intact; None if there is none.

    Example:
        >>> latest_checkpoint("a/directory/that/does/not/exist") is None
        True
    """
    root = layout.checkpoints_dir(model_dir)
    lineage = lineage_of(model_dir)
    if lineage is None:
        found = (_by_manifest(root / str(step), step) for step in reversed(layout.named_steps(root)))
    else:
        found = (_by_journal(root, saved) for _, saved in sorted(lineage.saved.items(), reverse=True))
    return next((str(one.path) for one in found if one is not None and not one.problem), None)


def check_named(path: Path) -> None:
    """Makes sure that a directory is the checkpoint that the journal names for its step, if there is a journal.

    Raises:
        CheckpointCorruptError: it is not.
    """
    lineage = lineage_of(path.parents[1])
    if lineage is None:
        return
    saved = lineage.saved.get(layout.checkpoint_step(path))
    if saved is None or manifest_digest(path) != saved.digest:
        raise CheckpointCorruptError(f"The checkpoint {path} is damaged: {_NOT_SAVED} {USE_ANOTHER}")


def manifest_digest(directory: Path) -> str | None:
    """The digest by which the journal identifies a checkpoint; None if no manifest can be read."""
    try:
        if directory.is_symlink():
            return None
        return hashlib.sha256(read_regular(directory / MANIFEST_FILE)).hexdigest()
    except OSError:
        return None


def where_is(root: Path, saved: Saved, *, look_only: bool = False) -> Path | None:
    """Where the data of a checkpoint is; None if it is gone.

    A process may be killed after it records a checkpoint and before it names the directory. The next process that looks
    then renames it. Nothing else uses this place, so a second rename does no harm.

    Args:
        root: the checkpoints directory.
        saved: what the journal says.
        look_only: whether to leave the directory where it is, without a rename.
    """
    named, placed = root / str(saved.step), root.parent / saved.place
    for _ in range(2):  # another process may rename it meanwhile
        if manifest_digest(named) == saved.digest:
            return named
        if not look_only and manifest_digest(placed) == saved.digest:
            with contextlib.suppress(OSError):
                placed.rename(named)
    if manifest_digest(placed) == saved.digest:
        return placed
    return next((path for path in _under_way(root, saved.step) if manifest_digest(path) == saved.digest), None)


_NOT_SAVED = "its manifest is not what was saved."


def _under_way(root: Path, step: int) -> list[Path]:
    kinds = (layout.WRITING, layout.DELETING, layout.REPLACED)
    return [path for kind in kinds for path in sorted(root.glob(f"{kind}{step}-e*"))]


def _by_journal(root: Path, saved: Saved) -> Listed:
    path = where_is(root, saved)
    if path is not None:
        return Listed(step=saved.step, path=path)
    named = root / str(saved.step)
    missing = not os.path.lexists(named)
    problem = "it is not there" if missing else _NOT_SAVED
    return Listed(step=saved.step, path=named, problem=problem, missing=missing)


def _by_manifest(path: Path, step: int) -> Listed | None:
    """None for a directory that is a copy of the checkpoint of another step."""
    try:
        found = read_manifest(path).step
    except (CheckpointCorruptError, CheckpointNotFoundError) as error:
        return Listed(step=step, path=path, problem=str(error))
    except (CheckpointError, OSError):  # of a newer format, or not to be read by this user: reading it says so
        return Listed(step=step, path=path)
    return Listed(step=step, path=path) if found == step else None
