"""The store that a coordinator requires, and values that only processes of the run can write."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Sequence
from typing import Protocol

from estimator_core.errors import EstimatorError

_log = logging.getLogger("estimator_cluster")


class StoreGoneError(EstimatorError, ConnectionError):
    """The process that holds the store does not answer."""


class Store(Protocol):
    """A store of keys and values that all processes see; see `service.Service`."""

    def put(self, key: str, value: str) -> None:
        """Writes a new key."""
        ...

    def listed(self, directory: str) -> Sequence[tuple[str, str]]:
        """Returns the keys below a directory, with their values."""
        ...

    def delete(self, directory: str) -> None:
        """Removes all keys below a directory."""
        ...

    def live(self, count: int) -> set[int]:
        """Returns the living processes. Waits until every living process asks."""
        ...


class SealedStore:
    """Stores values below directories, sealed with the secret of the run. It reports and ignores foreign values.

    The key of each value is unpredictable, so that a foreign value cannot replace it. The seal covers the key too: a
    value that is copied to another key is ignored.

    Args:
        store: the store of the values.
        secret: the secret of the run. None: values are not sealed, and every value counts.
    """

    def __init__(self, store: Store, secret: bytes | None) -> None:
        self._store, self._secret = store, secret
        self._named: set[str] = set()

    def put(self, directory: str, value: str) -> None:
        """Adds a value."""
        key = f"{directory}/{secrets.token_hex(8)}"
        self._store.put(key, f"{self._seal(key, value)}:{value}")

    def values(self, directory: str) -> list[str]:
        """Returns the values of this run anywhere below a directory."""
        found: list[str] = []
        for key, text in self._store.listed(directory):
            seal, _, value = text.partition(":")
            if hmac.compare_digest(seal.encode(), self._seal(key, value).encode()):
                found.append(value)
            elif key not in self._named:
                self._named.add(key)
                _log.warning(
                    "The value at %s does not carry the seal of this run and is ignored: a client without "
                    "ESTIMATOR_RUN_SECRET writes into the coordination service. Protect its port from others.",
                    key,
                )
        return found

    def first(self, directory: str) -> str | None:
        """Returns a value below a directory, or None if there is none."""
        return next(iter(self.values(directory)), None)

    def delete(self, directory: str) -> None:
        """Removes everything below a directory."""
        self._store.delete(directory)

    def live(self, count: int) -> set[int]:
        """Returns the living processes. Waits until every living process asks."""
        return self._store.live(count)

    def _seal(self, key: str, value: str) -> str:
        if self._secret is None:
            return ""
        return hmac.new(self._secret, f"{key}\0{value}".encode(), hashlib.sha256).hexdigest()
