"""The conversion of columns to JSON values and back, for the host part of a model in an export."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError

_HOME = {
    "IdentityCategoricalColumn": "identity",
    "HashedCategoricalColumn": "hashed",
    "VocabularyListCategoricalColumn": "vocabulary",
    "VocabularyFileCategoricalColumn": "vocabulary",
    "CrossedColumn": "crossed",
    "WeightedCategoricalColumn": "weighted",
    "SequenceCategoricalColumn": "sequence",
    "SequenceNumericColumn": "sequence",
    "NumericColumn": "numeric",
    "BucketizedColumn": "numeric",
}
#: Fields that run on the device, so the host part omits them.
_ON_THE_DEVICE = frozenset({"normalizer_fn"})


def encode(column: Any, files: dict[str, Path]) -> Any:
    """Returns a column as JSON values, and adds its files to `files` under the names that replace them.

    Raises:
        ArgumentError: the column is of another package, which does not define how it is written.
    """
    if isinstance(column, Path):
        name = next((name for name, path in files.items() if path == column), f"file_{len(files)}")
        files[name] = column
        return {"file": name}
    if isinstance(column, tuple):
        return [encode(item, files) for item in column]
    if not is_dataclass(column) or isinstance(column, type):
        return column
    kind = type(column).__name__
    if kind not in _HOME:
        raise ArgumentError(f"{kind} is not a column of this package: it cannot be written into an export.")
    given = {
        field.name: encode(getattr(column, field.name), files)
        for field in fields(column)
        if field.name not in _ON_THE_DEVICE
    }
    return {"kind": kind, **given}


def decode(value: Any, files: Mapping[str, Path]) -> Any:
    """Returns the argument of `encode`.

    Raises:
        ArgumentError: the kind of column is unknown.
    """
    if isinstance(value, list):
        return tuple(decode(item, files) for item in value)
    if not isinstance(value, Mapping):
        return value
    if "file" in value:
        return Path(files[value["file"]])
    given = dict(value)
    kind = given.pop("kind", None)
    if kind not in _HOME:
        raise ArgumentError(f"There is no kind of column {kind!r}. Kinds: {', '.join(_HOME)}.")
    made = getattr(importlib.import_module(f"estimator_canned_tabular.columns.{_HOME[kind]}"), kind)
    return made(**{name: decode(item, files) for name, item in given.items()})
