"""Restores a state. The manifest is compared with the model before anything is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._checkpoint.catalog import resolve_checkpoint
from estimator_core._checkpoint.diff import Shaped, VariableDiff, compare
from estimator_core._checkpoint.items import CheckpointItems
from estimator_core._checkpoint.manifest import Manifest, read_manifest
from estimator_core._checkpoint.read import read_checkpoint, reading
from estimator_core.errors import CheckpointMismatchError

_ARRAY_ITEMS = ("variables", "model_state", "opt_state")

#: item -> path -> shape and dtype in the model. Missing items are not read.
Abstract = Mapping[str, Mapping[str, Shaped]]


def restore(
    path: str | os.PathLike[str],
    abstract: Abstract,
    *,
    allow_cast: bool = False,
    allow_missing: bool = False,
    allow_extra: bool = False,
) -> CheckpointItems:
    """Reads the arrays of a model from a checkpoint, with the shapes and dtypes of the model.

    Args:
        path: a checkpoint, or a model_dir (its newest checkpoint).
        abstract: the items "variables", "model_state" and "opt_state", each from path to any object with `.shape` and
            `.dtype`. Missing items are not read. Input position, hook states and timers are always read.
        allow_cast: whether a different dtype is converted. Otherwise it is refused.
        allow_missing: whether arrays that the checkpoint lacks are omitted from the result, so that the caller keeps
            their initial values. Otherwise they are refused.
        allow_extra: whether arrays that the model does not have are ignored. Otherwise they are refused.

    Returns:
        Host arrays. Nothing is placed on devices.

    Raises:
        CheckpointMismatchError: the checkpoint does not fit. The message has the differences by item and path. Nothing
            was read.
        CheckpointNotFoundError, CheckpointCorruptError: see `read_checkpoint`.
    """
    directory = resolve_checkpoint(path)
    with reading(directory):
        manifest = read_manifest(directory)
        check_fits(
            directory, manifest, abstract, allow_cast=allow_cast, allow_missing=allow_missing, allow_extra=allow_extra
        )
        items = read_checkpoint(directory, (*abstract, "input", "hooks"))
    fitted = {item: _fit(getattr(items, item), wanted) for item, wanted in abstract.items()}
    return replace(items, **fitted)


def check_fits(
    directory: Path, manifest: Manifest, abstract: Abstract, *, allow_cast: bool, allow_missing: bool, allow_extra: bool
) -> None:
    """Compares a manifest with a model.

    Raises:
        CheckpointMismatchError: the manifest differs from the model in a way that is not allowed.
    """
    reports: list[str] = []
    cast = False
    for item in (name for name in _ARRAY_ITEMS if name in abstract):
        diff = compare(abstract[item], manifest.arrays.get(item, {}))
        refused = VariableDiff(
            only_a={} if allow_missing else diff.only_a,
            only_b={} if allow_extra else diff.only_b,
            shapes=diff.shapes,
            dtypes={} if allow_cast else diff.dtypes,
        )
        if refused:
            reports.append(f"{item}\n{_indented(refused.describe('model', 'checkpoint'))}")
            cast = cast or bool(refused.dtypes)
    if reports:
        raise CheckpointMismatchError(
            f"The checkpoint {directory} does not fit this model:\n{_indented(chr(10).join(reports))}\nIt was written "
            f"with {_packages(manifest)}. Use its model code or another model_dir, where ec.WarmStartSettings loads "
            f"the variables that fit.{' RunConfig(allow_cast=True) converts dtypes.' if cast else ''}"
        )


def _fit(found: Mapping[str, object], wanted: Mapping[str, Shaped]) -> dict[str, Any]:
    return {path: _cast(found[path], wanted[path].dtype) for path in wanted if path in found}


def _cast(array: Any, dtype: Any) -> Any:
    return array.astype(dtype) if isinstance(array, np.ndarray) and array.dtype != dtype else array


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _packages(manifest: Manifest) -> str:
    return ", ".join(f"{name} {version}" for name, version in manifest.packages.items()) or "unknown packages"
