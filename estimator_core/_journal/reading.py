"""Reads a journal: the newest snapshot, and every record after it."""

from __future__ import annotations

from estimator_core._journal.lineage import Lineage, add
from estimator_core._journal.records import JournalError, decode, digest_of, key_of
from estimator_core._journal.snapshots import newest_snapshot
from estimator_core._storage import ObjectMissingError, Storage

IDENTITY = "identity"


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
