"""What a storage raises, so that those who use one need not know whose it is."""

from __future__ import annotations

from estimator_core.errors import EstimatorError


class StorageError(EstimatorError, OSError):
    """A storage cannot do what it was asked to do.

    The message names the storage, the key, and what to do.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ObjectMissingError(StorageError):
    """There is no object of this key."""


class ObjectExistsError(StorageError):
    """There is an object of this key already; it stays as it is."""


class OutcomeUnknownError(StorageError):
    """Whether the object was written is not known: the answer was lost. The same call may be made again."""


class StorageDeniedError(StorageError):
    """The credentials do not allow it; the message says which permission is missing."""


class StorageFullError(StorageError):
    """There is no room left, or a quota is used up."""


class StorageGoneError(StorageError):
    """The bucket, the container or the root directory is not there. It is not made again."""


class ShortReadError(StorageError):
    """An object ends before the bytes that were asked for."""
