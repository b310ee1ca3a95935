"""Where checkpoints lie in a model_dir, and which directories count as one.

`<model_dir>/checkpoints/<step>` is a checkpoint once it has that name and a sealed manifest. Names that start with a
dot are work under way or its remains.
"""

from __future__ import annotations

import os
from pathlib import Path

from estimator_core._checkpoint.manifest import MANIFEST_FILE, read_manifest
from estimator_core.errors import CheckpointCorruptError, CheckpointError, CheckpointNotFoundError

CHECKPOINTS_DIR = "checkpoints"
ARRAYS_DIR = "arrays"
#: With several processes: where process N > 0 writes its arrays.
PROCESS_ARRAYS_DIR = "arrays-{}"
INPUT_FILE = "input.json"
HOOKS_FILE = "hooks.json"
#: Prefixes of what is not a checkpoint: being written, on its way out, put aside while its replacement takes the name.
WRITING, DELETING, REPLACED = ".writing-", ".deleting-", ".replaced-"
#: Prefix of a checkpoint that was found damaged and is kept for a look at it.
DAMAGED = "damaged-"


def checkpoints_dir(model_dir: str | os.PathLike[str]) -> Path:
    """The directory that holds the checkpoints of a model_dir."""
    return Path(model_dir) / CHECKPOINTS_DIR


def arrays_dir(checkpoint: Path, process: int) -> Path:
    """Where a process writes its arrays."""
    return checkpoint / (ARRAYS_DIR if process == 0 else PROCESS_ARRAYS_DIR.format(process))


def checkpoint_path(model_dir: str | os.PathLike[str], step: int) -> str:
    """Where the checkpoint of a step lies, or will lie once it is saved."""
    return str(checkpoints_dir(model_dir) / str(step))


def all_checkpoints(model_dir: str | os.PathLike[str]) -> list[str]:
    """Paths of the committed checkpoints, oldest step first: those with a manifest; its contents are not looked at."""
    root = checkpoints_dir(model_dir)
    return [str(root / str(step)) for step in committed_steps(root)]


def being_written(model_dir: str | os.PathLike[str], step: int) -> bool:
    """Whether the checkpoint of a step is being written: its directory does not have its name yet.

    Example:
        >>> being_written("a/directory/that/does/not/exist", 10)
        False
    """
    return any(checkpoints_dir(model_dir).glob(f"{WRITING}{step}-*"))


def committed_steps(root: Path) -> list[int]:
    """Steps of the committed checkpoints in a checkpoints directory, ascending."""
    return [step for step in named_steps(root) if (root / str(step) / MANIFEST_FILE).is_file()]


def named_steps(root: Path) -> list[int]:
    """Steps that have a directory, ascending: committed checkpoints, and those that have lost their manifest since."""
    try:
        with os.scandir(root) as entries:
            return sorted(int(entry.name) for entry in entries if _is_step(entry.name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def latest_checkpoint(model_dir: str | os.PathLike[str]) -> str | None:
    """The path of the newest checkpoint whose manifest is whole; None where there is none.

    Example:
        >>> latest_checkpoint("a/directory/that/does/not/exist") is None
        True
    """
    return next((path for path in reversed(all_checkpoints(model_dir)) if not _is_damaged(Path(path))), None)


def checkpoint_step(path: str | os.PathLike[str]) -> int:
    """The global step of a checkpoint, from its name.

    Raises:
        CheckpointNotFoundError: the name is not that of a checkpoint.
    """
    name = Path(path).name
    if not _is_step(name):
        raise CheckpointNotFoundError(
            f"{path} is no checkpoint: its name must be a step, such as <model_dir>/checkpoints/100."
        )
    return int(name)


def resolve_checkpoint(path: str | os.PathLike[str]) -> Path:
    """The checkpoint a user means: itself, or the newest one of a model_dir or of its `checkpoints` directory.

    Raises:
        CheckpointNotFoundError: there is none.
    """
    path = Path(path)
    if (path / MANIFEST_FILE).exists():
        return path
    newest = latest_checkpoint(path.parent if path.name == CHECKPOINTS_DIR else path)
    if newest is not None:
        return Path(newest)
    raise CheckpointNotFoundError(
        f"There is no checkpoint in {path}. Name a checkpoint (<model_dir>/checkpoints/100) or a model_dir "
        "that a training run has saved to."
    )


def _is_step(name: str) -> bool:
    return name.isascii() and name.isdigit() and str(int(name)) == name


def _is_damaged(path: Path) -> bool:
    """Whether the manifest is no use; one of a newer format, or one that may not be read, is: reading it says so."""
    try:
        read_manifest(path)
    except (CheckpointCorruptError, CheckpointNotFoundError):
        return True
    except (CheckpointError, OSError):
        return False
    return False
