"""Storage: the place of a model_dir, as named objects."""

from estimator_core._storage.contract import (
    Data,
    Entry,
    ObjectExistsError,
    ObjectMissingError,
    OutcomeUnknownError,
    ShortReadError,
    Storage,
    StorageDeniedError,
    StorageError,
    StorageFullError,
    StorageGoneError,
)

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
