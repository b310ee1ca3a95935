"""The arrays of a checkpoint of format 3. They are in packs, and are read when a part of them is requested."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._checkpoint.checksums import reading_failed
from estimator_core._checkpoint.manifest import ArrayEntry, Manifest
from estimator_core._packs.boxes import whole
from estimator_core._packs.dtypes import dtype_named
from estimator_core._packs.fetch import StoredArray, read_boxes, verify
from estimator_core._packs.packs import Packs, is_complete, packs_of
from estimator_core._packs.stored import stored_arrays
from estimator_core._storage.contract import ObjectMissingError, ShortReadError, StorageError
from estimator_core.errors import CheckpointNotFoundError

#: These are small and needed in every process, so they are read at once.
_AT_ONCE = ("clock", "hooks")

Entries = Mapping[str, Mapping[str, ArrayEntry]]


def open_entries(
    directory: Path, manifest: Manifest, wanted: Entries, *, part: int, parts: int
) -> dict[str, dict[str, Any]]:
    """Returns the arrays by item and path, still in their packs.

    The clock, arrays of hooks and random keys are in memory.

    Args:
        directory: the checkpoint.
        manifest: the manifest of the checkpoint.
        wanted: the entries to read.
        part: the index of the share of their bytes to verify now, so that several processes verify each byte once.
        parts: the number of shares.

    Raises:
        CheckpointCorruptError: the packs are damaged.
        CheckpointNotFoundError: the checkpoint was deleted during the read.
        StorageError: the store of the packs does not answer.
    """
    with _explained(directory):
        stored = _stored(directory, manifest, wanted)
        if is_complete(directory):  # bytes in a store are verified when they arrive
            verify([array for named in stored.values() for array in named.values()], part=part, parts=parts)
        at_once = {
            item: {path: entry for path, entry in named.items() if item in _AT_ONCE or entry.key_impl is not None}
            for item, named in wanted.items()
        }
        read = _read(stored, at_once)
    return {item: {**named, **read[item]} for item, named in stored.items()}


def read_packed(directory: Path, manifest: Manifest, wanted: Entries) -> dict[str, dict[str, Any]]:
    """Returns the whole arrays by item and path, in memory.

    Raises:
        CheckpointCorruptError: the packs are damaged.
        CheckpointNotFoundError: the checkpoint was deleted during the read.
        StorageError: the store of the packs does not answer.
    """
    with _explained(directory):
        return _read(_stored(directory, manifest, wanted), wanted)


def _stored(directory: Path, manifest: Manifest, wanted: Entries) -> dict[str, dict[str, StoredArray]]:
    packs = Packs(storage=packs_of(directory), prefix="", where=str(directory), entries=manifest.packs)
    expected = {
        item: {path: _as_stored(entry) for path, entry in named.items()} for item, named in manifest.arrays.items()
    }
    found = stored_arrays(packs, expected)
    return {item: {path: found[item][path] for path in named} for item, named in wanted.items()}


def _as_stored(entry: ArrayEntry) -> tuple[tuple[int, ...], str]:
    if entry.key_impl is None:
        return entry.shape, dtype_named(entry.dtype).name
    keys = math.prod(entry.shape)
    words = entry.bytes // (keys * np.dtype(np.uint32).itemsize) if keys else 0
    return (*entry.shape, words), "uint32"


def _read(stored: Mapping[str, Mapping[str, StoredArray]], wanted: Entries) -> dict[str, dict[str, Any]]:
    arrays = [stored[item][path] for item, named in wanted.items() for path in named]
    found = iter(read_boxes([(array, whole(array.shape)) for array in arrays]))
    return {
        item: {path: _as_saved(entry, next(found)) for path, entry in named.items()} for item, named in wanted.items()
    }


def _as_saved(entry: ArrayEntry, array: np.ndarray) -> Any:
    if entry.key_impl is None:
        return array
    import jax

    return jax.random.wrap_key_data(jax.numpy.asarray(array), impl=entry.key_impl)


@contextmanager
def _explained(directory: Path) -> Generator[None]:
    try:
        yield
    except ObjectMissingError as error:
        if is_complete(directory):
            raise reading_failed(directory, error) from error
        raise CheckpointNotFoundError(
            f"The checkpoint {directory} was deleted from the store while being read. Use a newer one."
        ) from error
    except StorageError as error:
        if not is_complete(directory) and not isinstance(error, ShortReadError):
            raise  # a store that does not answer reveals nothing about the checkpoint
        raise reading_failed(directory, error) from error
