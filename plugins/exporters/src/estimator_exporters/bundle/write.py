"""Writes the files that exports of all formats share."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import jax

from estimator_core.export import ExportRequest, Feature
from estimator_core.inputs import save_transforms
from estimator_exporters.bundle.card import CARD, card_of
from estimator_exporters.bundle.manifest import write_manifest

BEFORE, AFTER = "transforms/input", "transforms/output"
_WIDE = ("int64", "uint64")


def finish(
    request: ExportRequest,
    directory: Path,
    format_name: str,
    programs: Mapping[str, Any],
    *,
    asset_folders: Sequence[str] = ("assets",),
    **more: Any,
) -> None:
    """Writes assets, host transforms, the model card and, last, the manifest.

    Args:
        request: the request for the export.
        directory: the directory in which the format has written its own files.
        format_name: the name of the format.
        programs: the manifest entries about the program of each signature.
        asset_folders: the folders to which each asset is copied.
        more: further entries of the manifest.
    """
    for folder, (name, source) in product(asset_folders, request.assets.items()):
        target = directory / folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    for transforms, folder in ((request.input_transforms, BEFORE), (request.output_transforms, AFTER)):
        if transforms:
            save_transforms(transforms, directory / folder)
    (directory / CARD).write_text(card_of(request, format_name), encoding="utf-8")
    content = {
        "format": format_name,
        "global_step": request.global_step,
        "signatures": {
            name: {
                "method": signature.method,
                "inputs": described(signature.inputs),
                "computed": computed_dtypes(signature.inputs),
                "outputs": described(signature.outputs),
                "class_names": None if signature.class_names is None else list(signature.class_names),
                "program": programs[name],
            }
            for name, signature in request.signatures.items()
        },
        "receiver": described(request.receiver),
        "provenance": dict(request.provenance),
        **more,
    }
    write_manifest(directory, content)


def described(named: Mapping[str, Feature]) -> dict[str, Any]:
    """Returns features as JSON."""
    return {name: {"shape": list(feature.shape), "dtype": feature.dtype} for name, feature in named.items()}


def computed_dtypes(inputs: Mapping[str, Feature]) -> dict[str, str]:
    """Returns the dtypes to which jax narrows integer inputs here: 32 bits without jax_enable_x64."""
    dtypes = {name: feature.dtype for name, feature in inputs.items() if feature.dtype in _WIDE}
    computed = {name: str(jax.dtypes.canonicalize_dtype(dtype)) for name, dtype in dtypes.items()}
    return {name: dtype for name, dtype in computed.items() if dtype != dtypes[name]}
