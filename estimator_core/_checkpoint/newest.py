"""Finds and reads the newest intact checkpoint."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from estimator_core._checkpoint import catalog
from estimator_core._checkpoint.items import ITEM_NAMES, CheckpointItems
from estimator_core._cluster.processes import chief_says, gather
from estimator_core._storage.contract import StorageError
from estimator_core.coordinator import ALONE, Coordinator
from estimator_core.errors import CheckpointCorruptError, CheckpointNotFoundError

_log = logging.getLogger("estimator_core.checkpoint")


@dataclass(frozen=True, kw_only=True)
class Restored:
    """A checkpoint that was read: its path, global step and contents."""

    path: str
    step: int
    items: CheckpointItems


def read_latest(
    model_dir: str | os.PathLike[str],
    items: Iterable[str] = ITEM_NAMES,
    *,
    set_aside: bool = False,
    processes: Coordinator = ALONE,
) -> Restored | None:
    """Reads the newest intact checkpoint of a model_dir; None if there are no checkpoints at all.

    An error in the log reports a damaged checkpoint, and the previous one is used. Arrays in packs stay there. One of
    the processes verifies each byte.

    Args:
        model_dir: the directory of the run.
        items: see `read_checkpoint`.
        set_aside: whether to rename damaged checkpoints that are newer than the result to `damaged-<step>`, so that
            they do not pass for the newest. Only the run that owns the model_dir may request this.
        processes: the processes that read together. All of them use the same checkpoint.

    Raises:
        CheckpointCorruptError: every checkpoint is damaged. A start from scratch would lose the run.
        StorageError: the store of the packs does not answer one of the processes.

    Example:
        >>> read_latest("a/directory/that/does/not/exist") is None
        True
    """
    items = tuple(items)
    damaged: list[Path] = []
    told = [(one.path.name, one.missing) for one in reversed(catalog.listed(model_dir))]
    for name, missing in chief_says(processes, "restore-steps", told):
        path = catalog.checkpoints_dir(model_dir) / name
        if missing:
            _log.error("MISSING CHECKPOINT: the journal names %s, which does not exist.", path)
            continue
        found, damage = _tried(path, items, processes)
        if found is None:
            if damage:  # otherwise the run that owns the directory deleted it after the listing
                damaged.append(path)
                _log.error("DAMAGED CHECKPOINT: %s The previous checkpoint is tried.", damage)
            continue
        if damaged:
            newer = [set_aside_damaged(one) for one in damaged] if set_aside and processes.index == 0 else damaged
            _log.error("Continuing from %s, since newer checkpoints are damaged: %s.", path, ", ".join(map(str, newer)))
        return Restored(path=str(path), step=int(found.clock[0]), items=found)
    if damaged:
        raise CheckpointCorruptError(
            f"All checkpoints of {model_dir} are damaged: {', '.join(map(str, damaged))}. Restore one from a copy, "
            "or delete them to start from scratch."
        )
    return None


def _tried(path: Path, items: Iterable[str], processes: Coordinator) -> tuple[CheckpointItems | None, str]:
    """Returns the contents of a checkpoint, or its damage: "" if it was deleted meanwhile.

    The result is the same in all processes.
    """
    from estimator_core._checkpoint.read import open_checkpoint
    from estimator_core._packs.packs import is_complete

    found, problem, cause = None, None, None
    try:
        catalog.check_named(path)
        found = open_checkpoint(path, items, part=processes.index, parts=processes.count)
    except StorageError as error:
        problem, cause = ("store", str(error)), error
    except (CheckpointCorruptError, CheckpointNotFoundError) as error:
        retired = isinstance(error, CheckpointNotFoundError) and not is_complete(path)
        problem = ("deleted" if retired or not path.exists() else "damaged", str(error))
    problems = [one for one in gather(processes, "restore-verified", problem) if one is not None]
    told = dict(problems)
    if "store" in told:
        raise StorageError(told["store"]) from cause
    return (None if told else found), ("" if "deleted" in told else told.get("damaged", ""))


def set_aside_damaged(path: Path) -> Path:
    """Renames a damaged checkpoint to `damaged-<step>` (with a number if that exists). Returns its new path."""
    names = (f"{catalog.DAMAGED}{path.name}{f'.{n}' if n else ''}" for n in itertools.count())
    target = next(path.with_name(name) for name in names if not path.with_name(name).exists())
    path.rename(target)
    return target
