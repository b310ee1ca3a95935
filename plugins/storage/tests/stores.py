"""The parts that the suites of the three stores share: a bucket for each location, with an object next to the root."""

from __future__ import annotations

import hashlib
from pathlib import Path

from estimator_core.storage import open_storage
from estimator_core.testing import StorageSuite

PREFIX = "team/run 1"
BESIDE = ("team/run", "team/run 10/x", "other")


class StoreSuite(StorageSuite):
    """The suite, with buckets that are made and removed without the storage."""

    many = 1_200  # more than one page of any of these stores
    scheme = ""
    address = ("", 0)

    def make_bucket(self, name: str) -> None:
        raise NotImplementedError

    def remove_bucket(self, name: str) -> None:
        raise NotImplementedError

    def server(self):
        return self.address

    def location(self, folder: Path) -> str:
        bucket = "b" + hashlib.sha256(str(folder).encode()).hexdigest()[:20]
        self.make_bucket(bucket)
        whole = open_storage(f"{self.scheme}://{bucket}")
        for name in BESIDE:
            whole.put(name, b"theirs")
        whole.close()
        return f"{self.scheme}://{bucket}/{PREFIX}"

    def remove_root(self, location: str) -> None:
        self.remove_bucket(location.split("/")[2])

    def beside(self, location: str) -> list[str]:
        whole = open_storage("/".join(location.split("/")[:3]))
        names = [entry.key for entry in whole.list("") if not entry.key.startswith(f"{PREFIX}/")]
        whole.close()
        return names
