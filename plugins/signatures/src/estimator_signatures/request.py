"""Builds the request for an export of a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_core.export import ExportFormat, ExportRequest, ModelToExport
from estimator_core.inputs import HostTransform
from estimator_core.modes import ModeKeys
from estimator_signatures.receiving import client_transforms, entering, received_modes
from estimator_signatures.signatures import ModeSignatures, mode_signatures
from estimator_signatures.writing import check_request


def make_request(
    model: Callable[[], ModelToExport],
    chosen: ExportFormat,
    *,
    receivers: Mapping[str, Callable[[], Any]],
    seen: Mapping[str, Mapping[str, Any]],
    assets_extra: Mapping[str, str] | None,
    provenance: Mapping[str, Any],
    host_transforms: Sequence[HostTransform],
    label_transforms: Sequence[HostTransform],
) -> ExportRequest:
    """Returns the request for an export, after its format has checked it.

    Args:
        model: returns the model to export. It is called after the other arguments are checked.
        chosen: the format of the export.
        receivers: the functions that return the receivers, by mode.
        seen: the facts that training recorded about features: "places" and "dtype" by name.
        assets_extra: the files to add, from the name in the export to the path.
        provenance: the facts for the manifest.
        host_transforms: the transforms of the Estimator for features.
        label_transforms: the transforms of the Estimator for labels.

    Raises:
        ArgumentError, ArgumentTypeError, ExportError: the model cannot be exported.
    """
    received = received_modes(receivers, seen)
    assets = _assets(assets_extra)
    current = model()
    modes: dict[str, ModeSignatures] = {}
    with current.on_device():
        for mode, receiver in received.items():
            features, labels = entering(receiver, host_transforms, label_transforms)
            modes[mode] = mode_signatures(current, mode, receiver, features, labels)
    serving = received.get(ModeKeys.PREDICT)
    of_client = () if serving is None else client_transforms(serving)
    fixed = [found.fixed_batch_sizes for found in modes.values() if found.fixed_batch_sizes is not None]
    request = ExportRequest(
        signatures={name: spec for found in modes.values() for name, spec in found.signatures.items()},
        variables={name: current.values(value) for name, value in {**current.variables, **current.model_state}.items()},
        assets=assets,
        input_transforms=() if serving is None else (*of_client, *host_transforms),
        output_transforms=() if serving is None else modes[ModeKeys.PREDICT].prediction_transforms,
        receiver={} if serving is None else {str(name): feature for name, feature in serving.receiver_tensors.items()},
        fixed_batch_sizes=fixed[0] if fixed else None,
        global_step=current.step,
        provenance={**provenance, "client_transforms": len(of_client)},  # those of the Estimator follow
    )
    with current.on_device():
        check_request(request, chosen)
    return request


def _assets(assets_extra: Mapping[str, str] | None) -> dict[str, Path]:
    assets = {name: Path(os.path.expanduser(path)) for name, path in (assets_extra or {}).items()}
    taken: dict[Path, str] = {}
    for name, path in assets.items():
        place = Path(name)
        if not path.is_file():
            raise ArgumentError(f"assets_extra: there is no file {path} (for {name!r}).")
        if place.is_absolute() or ".." in place.parts or not place.parts:
            raise ArgumentError(f"assets_extra: {name!r} must be a relative path inside the export.")
        for other, named in taken.items():
            if place == other or place in other.parents or other in place.parents:
                raise ArgumentError(f"assets_extra: {named!r} and {name!r} overlap in the export. Rename one of them.")
        taken[place] = name
    return assets
