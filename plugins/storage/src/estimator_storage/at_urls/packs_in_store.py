"""Reads the packs of one checkpoint in a store that a working copy lacks: only the parts that are needed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from estimator_core.journal import LEASE_SECONDS, Lease
from estimator_core.storage import Data, Storage


class PacksInStore:
    """Reads parts of packs, and protects the packs from removal until `release`.

    Args:
        storage: the storage of the model_dir.
        place: the place of the checkpoint.
        lease: the lease of the place. None: no other process removes it, or there is no permission for a lease.
    """

    def __init__(self, storage: Storage, place: str, lease: Lease | None) -> None:
        self._storage, self._place, self._lease = storage, place, lease
        self._renewed = time.monotonic()

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
        """Returns parts of a pack; see `Storage.get_ranges`. The key is the name of the pack."""
        lease, now = self._lease, time.monotonic()
        if lease is not None and now - self._renewed > LEASE_SECONDS / 3:
            self._renewed = now
            lease.renew()
        return self._storage.get_ranges(f"{self._place}/{key}", ranges)

    def release(self) -> None:
        """Ends the lease. A second call does nothing."""
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()
