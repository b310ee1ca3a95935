"""A store in memory that several coordinators of one process share."""

import threading

from estimator_cluster.coordinator import JaxCoordinator
from estimator_cluster.liveness import Watch
from estimator_cluster.store import SealedStore


class FakeStore:
    """Stores keys and values, and counts requests and bytes."""

    def __init__(self, count=2):
        self.values: dict[str, str] = {}
        self.alive = set(range(count))
        self.requests = self.moved = 0
        self._lock = threading.Lock()

    def put(self, key, value):
        with self._lock:
            assert key not in self.values
            self.values[key] = value
            self.requests, self.moved = self.requests + 1, self.moved + len(key) + len(value)

    def listed(self, directory):
        with self._lock:
            found = [(key, value) for key, value in self.values.items() if key.startswith(f"{directory}/")]
            self.requests, self.moved = self.requests + 1, self.moved + sum(len(k) + len(v) for k, v in found)
            return found

    def delete(self, directory):
        with self._lock:
            self.values = {key: value for key, value in self.values.items() if not key.startswith(f"{directory}/")}

    def live(self, count):
        return set(self.alive)


def coordinators(store, count, made=None):
    """Returns the coordinators of the first processes, or of all processes by default."""
    sealed = SealedStore(store, b"of the run")
    found = []
    for index in range(count if made is None else made):
        who = [f"host-{other}, pid {other}" for other in range(count)]
        watch = Watch(sealed, "est/r/0", index, who, heartbeat_secs=20, stays=False, on_lost=lambda lost: None)
        found.append(
            JaxCoordinator(
                sealed,
                "est/r/0",
                index,
                count,
                watch,
                on_fail=lambda: None,
                on_close=lambda watch=watch, index=index: (watch.leave(), watch.end()),
                on_news=lambda: None,
            )
        )
    return found
