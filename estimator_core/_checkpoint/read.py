"""Reads checkpoints, completely or in part. Every byte is verified against the manifest."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._checkpoint import catalog, orbax_io
from estimator_core._checkpoint.catalog import resolve_checkpoint
from estimator_core._checkpoint.checksums import array_checksum, check_files, reading_failed
from estimator_core._checkpoint.foreign import foreign_variables
from estimator_core._checkpoint.items import ITEM_NAMES, CheckpointItems, join_hook_states
from estimator_core._checkpoint.manifest import USE_ANOTHER, ArrayEntry, Manifest, read_manifest
from estimator_core._moved import OLDER_CHECKPOINTS
from estimator_core._plugins.in_use import package_of, plugins_in_use
from estimator_core.errors import ArgumentError, CheckpointCorruptError, CheckpointNotFoundError

_changed = threading.Condition()
_readers: Counter[Path] = Counter()


@contextmanager
def reading(path: Path) -> Generator[None]:
    """Keeps a store of this process from moving or deleting a checkpoint while the context is open."""
    key = path.absolute()
    with _changed:
        _readers[key] += 1
    try:
        yield
    finally:
        with _changed:
            _readers[key] -= 1
            _changed.notify_all()


def rename_unless_read(path: Path, target: Path) -> bool:
    """Renames a checkpoint. Returns False and does nothing while it is being read."""
    with _changed:
        if _readers[path.absolute()]:
            return False
        path.rename(target)
        return True


def rename_when_unread(path: Path, target: Path) -> None:
    """Renames a checkpoint as soon as it is no longer being read."""
    with _changed:
        _changed.wait_for(lambda: not _readers[path.absolute()])
        path.rename(target)


#: item -> path -> entry.
Entries = Mapping[str, Mapping[str, ArrayEntry]]


def read_checkpoint(path: str | os.PathLike[str], items: Iterable[str] = ITEM_NAMES) -> CheckpointItems:
    """Reads a checkpoint into host memory and verifies it.

    Args:
        path: a checkpoint, or a model_dir (its newest checkpoint).
        items: the items to read, of "variables", "model_state", "opt_state", "input" and "hooks". The others stay
            empty.

    Returns:
        numpy arrays with the saved shapes and dtypes. Typed random keys are jax arrays.

    Raises:
        CheckpointNotFoundError: there is no checkpoint.
        CheckpointCorruptError: the checkpoint is damaged.
    """
    return _read(path, items, read_entries)


def open_checkpoint(
    path: str | os.PathLike[str], items: Iterable[str] = ITEM_NAMES, *, part: int = 0, parts: int = 1
) -> CheckpointItems:
    """Reads like `read_checkpoint`, but variables and optimizer state in packs stay there, as `StoredArray`s.

    Args:
        path: see `read_checkpoint`.
        items: see `read_checkpoint`.
        part: the share of the packs to verify now. Data that is read later is verified again.
        parts: the number of shares.

    Raises:
        CheckpointNotFoundError, CheckpointCorruptError: see `read_checkpoint`.
    """

    def entries(directory: Path, manifest: Manifest, wanted: Entries) -> dict[str, dict[str, Any]]:
        if not manifest.packs:
            return read_entries(directory, manifest, wanted)
        from estimator_core._checkpoint.in_packs import open_entries

        return open_entries(directory, manifest, wanted, part=part, parts=parts)

    return _read(path, items, entries)


def _read(
    path: str | os.PathLike[str],
    items: Iterable[str],
    entries: Callable[[Path, Manifest, Entries], dict[str, dict[str, Any]]],
) -> CheckpointItems:
    items = tuple(items)
    unknown = sorted(set(items) - set(ITEM_NAMES))
    if unknown:
        raise ArgumentError(f"A checkpoint has no items {unknown}; choose from {list(ITEM_NAMES)}.")
    directory = resolve_checkpoint(path)
    with reading(directory):
        manifest = read_manifest(directory)
        check_files(directory, manifest)
        wanted = {item: manifest.arrays.get(item, {}) for item in ("clock", *items) if item != "input"}
        arrays = entries(directory, manifest, wanted)
        hook_tree = _read_file(directory, catalog.HOOKS_FILE) if "hooks" in items else {}
        return CheckpointItems(
            clock=arrays["clock"]["clock"],
            variables=arrays.get("variables", {}),
            model_state=arrays.get("model_state", {}),
            opt_state=arrays.get("opt_state", {}),
            input=_read_file(directory, catalog.INPUT_FILE) if "input" in items else None,
            hooks=join_hook_states(hook_tree, arrays.get("hooks", {})),
            timers=manifest.timers,
            manifest=manifest.extras,
        )


def load_variables(path: str | os.PathLike[str], names: Iterable[str] | str | None = None) -> dict[str, np.ndarray]:
    """Returns the variables of a checkpoint by path, trainable or not. Model code is not required.

    Args:
        path: a checkpoint, or a model_dir (its newest checkpoint). Or a checkpoint of another framework that an
            installed package reads (`estimator_core.model.ReadsCheckpoints`).
        names: the names of the variables to read, or one name. None: all.

    Raises:
        CheckpointNotFoundError: there is no checkpoint.
        CheckpointCorruptError: the checkpoint is damaged.
        ArgumentError: a name is not in the checkpoint.

    Example:
        >>> load_variables("no/such/model_dir")
        Traceback (most recent call last):
        ...
        estimator_core.errors.CheckpointNotFoundError: There is no checkpoint in no/such/model_dir. ...
    """
    names = [names] if isinstance(names, str) else names  # a single name, which is not iterated as letters
    try:
        return _load_ours(path, names)
    except CheckpointNotFoundError:
        foreign = foreign_variables(path)
        if foreign is None:
            raise
        return dict(foreign) if names is None else {name: foreign[name] for name in _present(names, foreign, path)}


def _load_ours(path: str | os.PathLike[str], names: Iterable[str] | None) -> dict[str, np.ndarray]:
    directory = resolve_checkpoint(path)
    with reading(directory):
        manifest = read_manifest(directory)
        check_files(directory, manifest)
        wanted: Mapping[str, Mapping[str, ArrayEntry]] = {
            item: manifest.arrays.get(item, {}) for item in ("variables", "model_state")
        }
        if names is not None:
            chosen = _present(names, manifest.entries(*wanted), directory)
            wanted = {item: {p: e for p, e in named.items() if p in chosen} for item, named in wanted.items()}
        arrays = read_entries(directory, manifest, wanted)
    return {name: array for named in arrays.values() for name, array in named.items()}


def _present(names: Iterable[str], there: Mapping[str, object], place: str | os.PathLike[str]) -> set[str]:
    chosen = set(names)
    absent = sorted(chosen - there.keys())
    if absent:
        raise ArgumentError(f"The checkpoint {os.fspath(place)} has no variables {absent}; it has {sorted(there)}.")
    return chosen


def list_variables(path: str | os.PathLike[str]) -> dict[str, ArrayEntry]:
    """Returns shape, dtype and checksum of each variable of a checkpoint, trainable or not, without reading arrays."""
    return read_manifest(resolve_checkpoint(path)).entries("variables", "model_state")


def read_entries(directory: Path, manifest: Manifest, wanted: Entries) -> dict[str, dict[str, Any]]:
    """Reads and verifies arrays by item and path.

    Raises:
        CheckpointCorruptError: an array is absent, torn or altered.
        ArgumentError: arrays are in pieces of format 2, and the package that reads these is missing.
    """
    if manifest.packs:
        from estimator_core._checkpoint.in_packs import read_packed

        return read_packed(directory, manifest, wanted)
    in_pieces = {item: [path for path, entry in named.items() if not entry.crc32] for item, named in wanted.items()}
    older = None
    if any(in_pieces.values()):
        what = f"Reading the checkpoint {directory}, which several processes of an older version have written,"
        older = package_of(plugins_in_use(), *OLDER_CHECKPOINTS, what)
    stored = {
        item: {path: stored_dtype(entry) for path, entry in named.items() if entry.crc32 and entry.bytes}
        for item, named in wanted.items()
    }
    try:
        found = orbax_io.read_arrays(directory / catalog.ARRAYS_DIR, stored)
        assembled = {} if older is None else older.read_pieces(directory, in_pieces, orbax_io.read_arrays)
    except Exception as error:
        raise reading_failed(directory, error) from error
    return {
        item: {
            path: _verified(directory, item, path, entry, found.get(item, {})) if entry.crc32 else assembled[item][path]
            for path, entry in named.items()
        }
        for item, named in wanted.items()
    }


def stored_dtype(entry: ArrayEntry) -> np.dtype:
    """Returns the numpy dtype with which an array is stored."""
    from estimator_core._packs.dtypes import dtype_named

    return np.dtype(np.uint32) if entry.key_impl is not None else dtype_named(entry.dtype)


def _verified(directory: Path, item: str, path: str, entry: ArrayEntry, found: Mapping[str, np.ndarray]) -> Any:
    array = found.get(path)
    if array is None and not entry.bytes:
        array = np.empty(entry.shape, stored_dtype(entry))
    if array is None or array.nbytes != entry.bytes or array_checksum(array) != entry.crc32:
        raise _damaged(directory, f"{item} {path!r} differs from what was saved")
    if entry.key_impl is not None:
        import jax

        return jax.random.wrap_key_data(jax.numpy.asarray(array), impl=entry.key_impl)
    if array.shape != entry.shape:
        raise _damaged(directory, f"{item} {path!r} has shape {array.shape}, but {entry.shape} was saved")
    return array


def _damaged(directory: Path, what: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(f"The checkpoint {directory} is damaged: {what}. {USE_ANOTHER}")


def _read_file(directory: Path, name: str) -> Any:
    try:
        return json.loads((directory / name).read_bytes())
    except (OSError, ValueError) as error:
        raise reading_failed(directory, error) from error
