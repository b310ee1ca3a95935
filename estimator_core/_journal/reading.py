"""Reads a journal: the newest snapshot, and every record after it."""

from __future__ import annotations

import os
import threading

from estimator_core._journal.lineage import Lineage, add
from estimator_core._journal.records import JournalError, decode, digest_of, key_of
from estimator_core._journal.snapshots import newest_snapshot
from estimator_core._storage import ObjectMissingError, Storage
from estimator_core._storage.local import LocalStorage

IDENTITY = "identity"
#: What journals of this machine came to when they were read last, by directory.
_read: dict[str, Lineage] = {}
_reading = threading.Lock()
_MOST_READ = 16


def read_lineage(storage: Storage, *, whole: bool = False) -> Lineage:
    """What a journal comes to; without one, that of no records.

    Args:
        storage: where it lies.
        whole: reads every record, so that each link of the chain is checked, and no snapshot.

    Raises:
        JournalError: a record is damaged or does not follow the one before, or the journal has lost its beginning.
        StorageError: the storage does not answer.

    Example:
        >>> import tempfile
        >>> from estimator_core._storage.local import LocalStorage
        >>> read_lineage(LocalStorage(tempfile.mkdtemp())).writer
        'nobody'
    """
    identity = _identity(storage)
    if not identity:
        return Lineage()
    lineage = Lineage(identity=identity) if whole else newest_snapshot(storage, identity)
    if lineage.identity != identity:
        raise JournalError(f"{storage.url} holds parts of two model_dirs: its {IDENTITY} is not that of its journal.")
    refresh(storage, lineage)
    return lineage


def _identity(storage: Storage) -> str:
    """Of the model_dir; "" where no run has begun one."""
    for has_journal in (False, True):
        try:
            return storage.get(IDENTITY).decode("ascii", "replace")
        except ObjectMissingError:
            if not has_journal and next(storage.list("journal"), None) is None:
                return ""
    # It is made before the journal, and it was looked for once more after the journal was seen.
    raise JournalError(
        f"{storage.url} has a journal and no {IDENTITY}: a removal was interrupted, or a copy is not complete. "
        "Remove the rest, or use another model_dir."
    )


def lineage_of(model_dir: str | os.PathLike[str]) -> Lineage | None:
    """What the journal of a directory of this machine comes to now; None where nobody has begun one.

    Only what is new since the last call in this process is read.

    Raises:
        JournalError, StorageError: as `read_lineage`.

    Example:
        >>> lineage_of("a/directory/that/does/not/exist") is None
        True
    """
    root = os.path.abspath(model_dir)
    if not (os.path.isfile(os.path.join(root, IDENTITY)) or os.path.isdir(os.path.join(root, "journal"))):
        return None
    storage = LocalStorage(root)
    with _reading:
        lineage = _read.pop(root, None)
        if lineage is None or not is_kept(storage, lineage):
            lineage = read_lineage(storage)
        else:
            refresh(storage, lineage)
        if lineage.number < 0:
            return None
        while len(_read) >= _MOST_READ:
            del _read[next(iter(_read))]
        _read[root] = lineage
        return lineage.copy()


def is_kept(storage: Storage, lineage: Lineage) -> bool:
    """Whether a journal holds what was read of it."""
    try:
        identity, last = storage.get(IDENTITY), storage.get(key_of(lineage.identity, lineage.number))
    except ObjectMissingError:
        return False
    return identity.decode("ascii", "replace") == lineage.identity and digest_of(last) == lineage.head


def refresh(storage: Storage, lineage: Lineage) -> int:
    """Adds the records that have appeared since.

    Args:
        storage: where the journal lies.
        lineage: changed in place.

    Returns:
        How many there were.

    Raises:
        JournalError: a record is damaged or does not follow the one before.
    """
    count = 0
    while True:
        key = key_of(lineage.identity, lineage.number + 1)
        try:
            data = storage.get(key)
        except ObjectMissingError:
            return count
        add(lineage, decode(data, f"{storage.url}/{key}"), digest_of(data))
        count += 1
