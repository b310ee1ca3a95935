"""Storage: where a model_dir lies, as named objects."""

from estimator_core._storage.contract import Data, Entry, Storage
from estimator_core._storage.errors import StorageDeniedError, ObjectExistsError, StorageFullError, StorageGoneError, ObjectMissingError, ShortReadError, StorageError, OutcomeUnknownError

__all__ = [
    "Data",
    "StorageDeniedError",
    "Entry",
    "ObjectExistsError",
    "StorageFullError",
    "StorageGoneError",
    "ObjectMissingError",
    "ShortReadError",
    "Storage",
    "StorageError",
    "OutcomeUnknownError",
]
