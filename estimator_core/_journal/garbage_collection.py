"""Removes the data of retired checkpoints, and of checkpoints that no run can record any longer."""

from __future__ import annotations

import re
import uuid

from estimator_core._journal.entries import Removed
from estimator_core._journal.leases import FOLDER, LEASE_SECONDS
from estimator_core._journal.writer import Journal
from estimator_core._storage.contract import Storage

DATA = "data"
_PLACE = re.compile(rf"({DATA}/[^/]+/e(\d+)-\d+-[0-9a-f]+)/")


def new_place(journal: Journal, step: int) -> str:
    """Returns a place for the data of a checkpoint that nothing else uses.

    Its name contains the model_dir and the epoch that may record it. So a collecting run knows which data can no longer
    be recorded, and a run whose model_dir was replaced does not remove data of the new one.

    Args:
        journal: the journal of the writer.
        step: the step of the checkpoint.

    Example:
        >>> import tempfile
        >>> from estimator_core.journal import new_place, take_over
        >>> from estimator_core.storage import LocalStorage
        >>> journal = take_over(LocalStorage(tempfile.mkdtemp()), "host-a, process 1", lambda lineage: 0)
        >>> new_place(journal, step=20).split("/")[2][:22]
        'e0000000001-0000000020'
    """
    return f"{DATA}/{journal.lineage.identity}/e{journal.epoch:010d}-{step:010d}-{uuid.uuid4().hex}"


def collect(storage: Storage, journal: Journal, *, lease_seconds: float = LEASE_SECONDS) -> list[str]:
    """Removes data of retired checkpoints without a lease, and unrecorded data of earlier epochs.

    It may be interrupted at any point, and a superseded run may still execute it, because the removed data is never
    needed again.

    Args:
        storage: the storage of the model_dir.
        journal: the journal of its writer.
        lease_seconds: the duration of a lease, by the clock of the storage.

    Returns:
        The places of the removed retired checkpoints.

    Raises:
        SupersededError, StorageError: see `Journal.publish`.

    Example:
        >>> import tempfile
        >>> from estimator_core.journal import Retired, Saved, collect, new_place, take_over
        >>> from estimator_core.storage import LocalStorage
        >>> storage = LocalStorage(tempfile.mkdtemp())
        >>> journal = take_over(storage, "host-a, process 1", lambda lineage: 0)
        >>> place = new_place(journal, step=5)
        >>> storage.put(f"{place}/weights", b"...")
        >>> number = journal.publish(Saved(step=5, place=place, digest=""))
        >>> number = journal.publish(Retired(place=place))
        >>> collect(storage, journal) == [place]
        True
        >>> list(storage.list("data"))
        []
    """
    retired = tuple(journal.lineage.retired)  # recorded, so a reader that leases one of them from now on releases it
    leased = _leased(storage, lease_seconds)
    gone = [place for place in retired if place not in leased]
    for place in gone:
        storage.delete([entry.key for entry in storage.list(place)])
        journal.publish(Removed(place=place))
    _remove_unrecorded(storage, journal)
    return gone


def _leased(storage: Storage, lease_seconds: float) -> set[str]:
    """Returns the places with a valid lease. Expired leases are removed."""
    now = storage.now()  # before the list, so that a lease renewed between the two does not look older than it is
    entries = list(storage.list(FOLDER))
    storage.delete([entry.key for entry in entries if now - entry.modified >= lease_seconds])
    live = [entry.key for entry in entries if now - entry.modified < lease_seconds]
    return {key.removeprefix(f"{FOLDER}/").rpartition("/")[0] for key in live}


def _remove_unrecorded(storage: Storage, journal: Journal) -> None:
    """Removes unrecorded data of writers of earlier epochs, because they can no longer record it."""
    identity = journal.lineage.identity
    found = [(entry.key, match) for entry in storage.list(f"{DATA}/{identity}") if (match := _PLACE.match(entry.key))]
    lineage = journal.lineage
    named = {saved.place for saved in lineage.saved.values()}.union(lineage.retired)
    storage.delete([key for key, match in found if int(match[2]) < journal.epoch and match[1] not in named])
