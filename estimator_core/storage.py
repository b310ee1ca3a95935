"""Storages: the place of a model_dir, on this machine or in an object store."""

from estimator_core._files import draft_of, is_url
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
    check_key,
    check_ranges,
    is_key,
)
from estimator_core._storage.copies import copied_files, local_copy, published_file
from estimator_core._storage.local import LocalStorage
from estimator_core._storage.opening import open_storage

__all__ = [
    "Data",
    "StorageDeniedError",
    "Entry",
    "ObjectExistsError",
    "StorageFullError",
    "StorageGoneError",
    "LocalStorage",
    "ObjectMissingError",
    "ShortReadError",
    "Storage",
    "StorageError",
    "OutcomeUnknownError",
    "check_key",
    "check_ranges",
    "copied_files",
    "draft_of",
    "is_key",
    "is_url",
    "local_copy",
    "open_storage",
    "published_file",
]
