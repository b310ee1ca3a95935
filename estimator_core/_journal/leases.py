"""Leases: a reader tells those who remove retired checkpoints what it reads.

A reader puts its lease first and reads the journal second; a remover records that a checkpoint is retired first and
lists the leases second. So one of the two sees the other, whatever happens between.
"""

from __future__ import annotations

import uuid

from estimator_core._journal.lineage import Lineage
from estimator_core._journal.reading import refresh
from estimator_core._storage.contract import Storage

FOLDER = "leases"
#: How long a lease keeps data from removal, by the clock of the storage.
LEASE_SECONDS = 600.0


class Lease:
    """Keeps the data of a checkpoint from removal until it is released. Made by `lease`.

    Args:
        storage: where the checkpoint is.
        key: of the object that says so.
        reader: who it is, for people.
    """

    def __init__(self, storage: Storage, key: str, reader: str) -> None:
        self._storage = storage
        self._key = key
        self._reader = reader

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def renew(self) -> None:
        """Lets it count from now. A reader that takes long calls it every third of `LEASE_SECONDS`.

        A lease that has run out may come too late: data that is missing then was removed by right.
        """
        self._storage.put(self._key, self._reader.encode())

    def release(self) -> None:
        """Ends it. A second call does nothing."""
        self._storage.delete([self._key])


def lease(storage: Storage, lineage: Lineage, place: str, reader: str) -> Lease | None:
    """Leases the data of a checkpoint.

    Args:
        storage: where it is.
        lineage: what the journal came to; brought up to date.
        place: of the checkpoint, as `Saved` says it.
        reader: who reads, for people.

    Returns:
        The lease; None if the checkpoint is no longer kept: take another one of `lineage.saved`.

    Raises:
        JournalError, StorageError: as `refresh`; there is no lease.

    Example:
        >>> import tempfile
        >>> from estimator_core.journal import Retired, Saved, lease, read_lineage, take_over
        >>> from estimator_core.storage import LocalStorage
        >>> storage = LocalStorage(tempfile.mkdtemp())
        >>> journal = take_over(storage, "host-a, process 1", lambda lineage: 0)
        >>> journal.publish(Saved(step=5, place="data/five", digest=""))
        1
        >>> lineage = read_lineage(storage)
        >>> with lease(storage, lineage, "data/five", "evaluator") as held:
        ...     pass  # what is read here stays
        >>> journal.publish(Retired(place="data/five"))
        2
        >>> print(lease(storage, lineage, "data/five", "evaluator"))
        None
    """
    held = Lease(storage, f"{FOLDER}/{place}/{uuid.uuid4().hex}", reader)
    held.renew()
    refresh(storage, lineage)
    if any(saved.place == place for saved in lineage.saved.values()):
        return held
    held.release()
    return None
