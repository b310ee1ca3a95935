"""Leases: a reader announces what it reads to processes that remove retired checkpoints.

A reader first writes its lease and then reads the journal. A remover first records that a checkpoint is retired and
then lists the leases. So at least one of the two always sees the other.
"""

from __future__ import annotations

import uuid

from estimator_core._journal.lineage import Lineage
from estimator_core._journal.reading import refresh
from estimator_core._storage.contract import Storage

FOLDER = "leases"
#: The duration of a lease, by the clock of the storage.
LEASE_SECONDS = 600.0


class Lease:
    """Protects the data of a checkpoint from removal until it is released. `lease` creates it.

    Args:
        storage: the storage of the checkpoint.
        key: the key of the lease object.
        reader: the name of the reader, for messages.
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
        """Restarts the duration of the lease. A slow reader must call it every third of `LEASE_SECONDS`.

        If the lease has already expired, this may be too late, and the data may have been removed.
        """
        self._storage.put(self._key, self._reader.encode())

    def release(self) -> None:
        """Ends the lease. A second call does nothing."""
        self._storage.delete([self._key])


def lease(storage: Storage, lineage: Lineage, place: str, reader: str) -> Lease | None:
    """Leases the data of a checkpoint.

    Args:
        storage: the storage of the checkpoint.
        lineage: the sum of the journal, which is updated.
        place: the place of the checkpoint, as in `Saved`.
        reader: the name of the reader, for messages.

    Returns:
        The lease; None if the checkpoint is no longer kept. Then use another one of `lineage.saved`.

    Raises:
        JournalError, StorageError: see `refresh`. No lease is created.

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
