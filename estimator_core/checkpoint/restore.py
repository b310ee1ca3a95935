"""Restoring a state: the manifest is compared with what the model wants before anything is read."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.checkpoint import layout
from estimator_core.checkpoint.diff import Shaped, VariableDiff, compare
from estimator_core.checkpoint.items import CheckpointItems
from estimator_core.checkpoint.manifest import Manifest, read_manifest
from estimator_core.checkpoint.pins import reading
from estimator_core.checkpoint.read import read_checkpoint
from estimator_core.errors import CheckpointCorruptError, CheckpointMismatchError, CheckpointNotFoundError

_log = logging.getLogger("estimator_core.checkpoint")
_ARRAY_ITEMS = ("variables", "model_state", "opt_state")

#: item -> path -> what the model expects; items left out are not read.
Abstract = Mapping[str, Mapping[str, Shaped]]


@dataclass(frozen=True, kw_only=True)
class Restored:
    """A restored checkpoint: its path, global step and contents."""

    path: str
    step: int
    items: CheckpointItems


def restore(
    path: str | os.PathLike[str],
    abstract: Abstract,
    *,
    allow_cast: bool = False,
    allow_missing: bool = False,
    allow_extra: bool = False,
) -> CheckpointItems:
    """Reads what a model wants out of a checkpoint, with the shapes and dtypes it wants.

    Args:
        path: a checkpoint, or a model_dir (its newest checkpoint).
        abstract: "variables", "model_state" and "opt_state", each path -> anything with `.shape` and `.dtype`. Items
            left out are not read. Input position, hook states and timers always are.
        allow_cast: a dtype that differs is converted; else it is refused.
        allow_missing: what the checkpoint lacks is left out of the result (the caller keeps its initial value); else it
            is refused.
        allow_extra: what the model does not want is not read; else it is refused.

    Returns:
        Host arrays; nothing is placed on devices.

    Raises:
        CheckpointMismatchError: carries the difference, by item and path; nothing was read.
        CheckpointNotFoundError, CheckpointCorruptError: as `read_checkpoint`.
    """
    directory = layout.resolve_checkpoint(path)
    with reading(directory):
        manifest = read_manifest(directory)
        check_fits(
            directory, manifest, abstract, allow_cast=allow_cast, allow_missing=allow_missing, allow_extra=allow_extra
        )
        items = read_checkpoint(directory, (*abstract, "input", "hooks"))
    fitted = {item: _fit(getattr(items, item), wanted) for item, wanted in abstract.items()}
    return with_fields(items, **fitted)


def restore_latest(
    model_dir: str | os.PathLike[str],
    abstract: Abstract,
    *,
    allow_cast: bool = False,
    allow_missing: bool = False,
    allow_extra: bool = False,
    set_aside: bool = False,
) -> Restored | None:
    """Restores the newest checkpoint of a model_dir that is intact; None where there is no checkpoint at all.

    A damaged checkpoint is reported loudly and the one before it is used.

    Args:
        model_dir: the directory of the run.
        abstract: as in `restore`.
        allow_cast: as in `restore`.
        allow_missing: as in `restore`.
        allow_extra: as in `restore`.
        set_aside: damaged checkpoints newer than the one restored are renamed to `damaged-<step>`, so that nobody takes
            them for the newest; only for the run that owns the model_dir.

    Raises:
        CheckpointMismatchError: the newest intact checkpoint does not fit the model.
        CheckpointCorruptError: every checkpoint is damaged.
    """
    damaged: list[str] = []
    for path in reversed(layout.all_checkpoints(model_dir)):
        try:
            items = restore(path, abstract, allow_cast=allow_cast, allow_missing=allow_missing, allow_extra=allow_extra)
        except CheckpointCorruptError as error:
            damaged.append(path)
            _log.error("DAMAGED CHECKPOINT: %s The checkpoint before it is tried.", error)
            continue
        except CheckpointNotFoundError:
            continue  # deleted by the run that owns the directory, after it was listed
        step = int(items.clock[0])
        if damaged:
            if set_aside:
                damaged = [str(set_aside_damaged(Path(newer))) for newer in damaged]
            _log.error("Restored step %d from %s: newer checkpoints are damaged: %s.", step, path, ", ".join(damaged))
        return Restored(path=path, step=step, items=items)
    if damaged:
        raise CheckpointCorruptError(
            f"All checkpoints of {model_dir} are damaged: {', '.join(damaged)}. Restore one from a copy, or delete "
            "them to start from scratch."
        )
    return None


def set_aside_damaged(path: Path) -> Path:
    """Renames a damaged checkpoint to `damaged-<step>` (numbered if that is taken); returns its new path."""
    names = (f"{layout.DAMAGED}{path.name}{f'.{n}' if n else ''}" for n in itertools.count())
    target = next(path.with_name(name) for name in names if not path.with_name(name).exists())
    path.rename(target)
    return target


def check_fits(
    directory: Path, manifest: Manifest, abstract: Abstract, *, allow_cast: bool, allow_missing: bool, allow_extra: bool
) -> None:
    """Compares a manifest with what a model wants.

    Raises:
        CheckpointMismatchError: they differ in a way that is not allowed.
    """
    reports: list[str] = []
    for item in (name for name in _ARRAY_ITEMS if name in abstract):
        diff = compare(abstract[item], manifest.arrays.get(item, {}))
        refused = VariableDiff(
            only_a={} if allow_missing else diff.only_a,
            only_b={} if allow_extra else diff.only_b,
            shapes=diff.shapes,
            dtypes={} if allow_cast else diff.dtypes,
        )
        if refused:
            reports.append(f"{item}\n{_indented(refused.describe('model', 'checkpoint'))}")
    if reports:
        raise CheckpointMismatchError(
            f"The checkpoint {directory} does not fit this model:\n{_indented(chr(10).join(reports))}\n"
            f"It was written with {_packages(manifest)}. Use the model code it was trained with, or another model_dir; "
            "to take over only what fits, use RunConfig/Estimator warm start."
        )


def _fit(found: Mapping[str, Any], wanted: Mapping[str, Shaped]) -> dict[str, Any]:
    return {path: _cast(found[path], wanted[path].dtype) for path in wanted if path in found}


def _cast(array: Any, dtype: Any) -> Any:
    return array.astype(dtype) if isinstance(array, np.ndarray) and array.dtype != dtype else array


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _packages(manifest: Manifest) -> str:
    return ", ".join(f"{name} {version}" for name, version in manifest.packages.items()) or "unknown packages"
