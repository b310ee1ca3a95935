"""Tests of a writer whose network pauses while another run takes over: it is refused, and the error names the other."""

from __future__ import annotations

import os
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import estimator_core as ec
from estimator_core._journal.entries import decode
from estimator_core.errors import SupersededError
from estimator_core.journal import Saved, new_place, read_lineage, take_over
from estimator_core.plugins import Plugins
from estimator_core.storage import Storage, open_storage
from plugins.storage.tests import emulators
from plugins.storage.tests.pausing_proxy import PausingProxy
from plugins.storage.tests.runs import batches, estimator

OTHER = "host-b, process 2"
PAUSES = int(os.environ.get("FAULT_PAUSES", "100"))


@pytest.fixture
def proxy(s3: tuple[str, int]) -> Iterator[PausingProxy]:
    """Runs a proxy in front of moto, with an empty bucket."""
    emulators.s3_client().create_bucket(Bucket="pauses")
    proxy = PausingProxy(s3)
    with proxy.running():
        yield proxy


def opened(url: str, endpoint: str) -> Storage:
    """Opens the storage with its own network."""
    return open_storage(url, Plugins(options={"estimator-storage": {"s3_endpoint": endpoint}}))


def commit(storage: Storage, journal: Any, step: int, digest: str) -> None:
    """Uploads and records a checkpoint."""
    place = new_place(journal, step)
    storage.put(f"{place}/weights", digest.encode())
    journal.publish(Saved(step=step, place=place, digest=digest))


class Writer(threading.Thread):
    """Commits one step after the other until it is refused.

    Attributes:
        acknowledged: the steps whose commits have returned.
        error: the error that ended it.
    """

    def __init__(self, storage: Storage) -> None:
        super().__init__()
        self.acknowledged: list[int] = []
        self.error: Exception | None = None
        self._storage = storage

    def run(self) -> None:
        try:
            journal = take_over(self._storage, "host-a, process 1", lambda lineage: 0)
            for step in range(1, 10_000):
                commit(self._storage, journal, step, "a")
                self.acknowledged.append(step)
        except Exception as error:
            self.error = error


def commits(storage: Storage) -> list[tuple[int, int]]:
    """Returns the epoch and step of each commit, in the order of the journal."""
    records = [decode(storage.get(entry.key), entry.key) for entry in storage.list("journal")]
    return [(record.epoch, one.step) for record in records for one in record.entries if isinstance(one, Saved)]


def paused(proxy: PausingProxy, endpoint: str, moments: random.Random) -> str:
    """Runs one trial, and returns the direction that was held."""
    url = f"s3://pauses/{uuid.uuid4().hex}"
    direct, writer = opened(url, endpoint), Writer(opened(url, proxy.url))
    writer.start()
    while not writer.acknowledged:
        time.sleep(0.002)
    time.sleep(moments.uniform(0, 0.1))
    direction = moments.choice(["requests", "answers"])
    proxy.hold(direction)
    assert proxy.held.wait(30)
    journal = take_over(direct, OTHER, lambda lineage: max(lineage.saved))
    last = max(journal.lineage.saved)
    for step in (last + 1, last + 2):
        commit(direct, journal, step, "b")
    proxy.release()
    writer.join(60)
    assert isinstance(writer.error, SupersededError), writer.error
    assert OTHER in str(writer.error)
    found = commits(direct)
    assert found == [*((1, step) for step in range(1, last + 1)), (2, last + 1), (2, last + 2)]
    assert writer.acknowledged in (list(range(1, last + 1)), list(range(1, last)))
    return direction


def test_a_writer_whose_network_pauses_is_refused(proxy: PausingProxy, s3: tuple[str, int]) -> None:
    moments = random.Random(os.urandom(2))
    assert sum(1 for _ in range(6) if paused(proxy, "http://{}:{}".format(*s3), moments)) == 6


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_many_pauses(proxy: PausingProxy, s3: tuple[str, int]) -> None:
    seed = int.from_bytes(os.urandom(2))
    moments = random.Random(seed)
    held = Counter(paused(proxy, "http://{}:{}".format(*s3), moments) for _ in range(PAUSES))
    print(f"seed {seed}: {PAUSES} pauses, by what was held: {dict(held)}")
    assert held.total() == PAUSES


class Pauses(ec.Hook):
    """Makes another run take over while the network of this run is paused."""

    def __init__(self, proxy: PausingProxy, direct: Storage) -> None:
        self._proxy, self._direct = proxy, direct

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if step != 7:
            return
        while 5 not in read_lineage(self._direct).saved:
            time.sleep(0.01)
        self._proxy.hold("requests")
        self._rival = threading.Thread(target=self._take_over)
        self._rival.start()

    def _take_over(self) -> None:
        assert self._proxy.held.wait(30)
        journal = take_over(self._direct, OTHER, lambda lineage: 5)
        commit(self._direct, journal, 10, "b")
        self._proxy.release()

    def end(self, run: Any) -> None:
        self._rival.join()


def test_a_run_whose_network_pauses_is_refused(
    proxy: PausingProxy, s3: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = opened("s3://pauses/run", "http://{}:{}".format(*s3))
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
    with pytest.raises(SupersededError, match=OTHER):
        estimator("s3://pauses/run").train(batches, max_steps=40, hooks=[Pauses(proxy, direct)])
    assert commits(direct) == [(1, 0), (1, 5), (2, 10)]
