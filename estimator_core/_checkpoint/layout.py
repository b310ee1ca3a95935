"""Where checkpoints are in a model_dir, and how their directories are named.

Names that start with a dot are work under way or its remains. `catalog` decides which directories count.
"""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path

from estimator_core._checkpoint.manifest import MANIFEST_FILE
from estimator_core.errors import CheckpointNotFoundError

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
#: Prefix of a directory that was in the place of a checkpoint although no run had saved it there.
UNNAMED = "unnamed-"
_WORK = re.compile(r"\.(writing|deleting|replaced)-(?P<step>\d+)-e(?P<epoch>\d{6})-[0-9a-f]{8}")


def checkpoints_dir(model_dir: str | os.PathLike[str]) -> Path:
    """The directory that holds the checkpoints of a model_dir."""
    return Path(model_dir) / CHECKPOINTS_DIR


def arrays_dir(checkpoint: Path, process: int) -> Path:
    """Where a process writes its arrays."""
    return checkpoint / (ARRAYS_DIR if process == 0 else PROCESS_ARRAYS_DIR.format(process))


def checkpoint_path(model_dir: str | os.PathLike[str], step: int) -> str:
    """Where the checkpoint of a step is, or will be once it is saved."""
    return str(checkpoints_dir(model_dir) / str(step))


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
            return sorted(int(entry.name) for entry in entries if is_step(entry.name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def checkpoint_step(path: str | os.PathLike[str]) -> int:
    """The global step of a checkpoint, from its name.

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
    """A unique name for a directory that becomes a checkpoint, or that ceases to be one.

    Args:
        kind: `WRITING`, `DELETING` or `REPLACED`.
        step: the step of the checkpoint.
        epoch: the epoch of the run that names it.
    """
    return f"{kind}{step}-e{epoch:06d}-{uuid.uuid4().hex[:8]}"


def work_epoch(name: str) -> int | None:
    """The epoch in the name of work under way: 0 if a release without epochs named it, None for any other name.

    Example:
        >>> work_epoch(".writing-5-e000003-0123abcd"), work_epoch(".deleting-5"), work_epoch("5")
        (3, 0, None)
    """
    if not name.startswith((WRITING, DELETING, REPLACED)):
        return None
    match = _WORK.fullmatch(name)
    return int(match["epoch"]) if match else 0


def is_step(name: str) -> bool:
    """Whether a name is that of a checkpoint."""
    return name.isascii() and name.isdigit() and str(int(name)) == name
