"""Writes a `stablehlo` export."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from estimator_core.errors import ExportError
from estimator_core.export import ExportRequest
from estimator_exporters.bundle.write import finish
from estimator_exporters.stablehlo.programs import PLATFORMS, programs_of

WEIGHTS = "variables.safetensors"


def check(request: ExportRequest) -> None:
    """Lowers the programs that `write` writes. They are cached until then.

    Raises:
        ExportError: a signature cannot be lowered. The message names the place in the user's code.
    """
    for signature in request.signatures.values():
        programs_of(signature, request.variables, request.fixed_batch_sizes)


def write(request: ExportRequest, directory: Path) -> None:
    """Writes programs, weights, assets, transforms and the manifest.

    Raises:
        ExportError: a signature cannot be lowered, or a variable cannot be written. The message names the place or the
            dtypes.
    """
    (directory / "programs").mkdir()
    files: dict[int, str] = {}
    programs: dict[str, list[dict[str, Any]]] = {}
    for name, signature in request.signatures.items():
        programs[name] = []
        for size, program in programs_of(signature, request.variables, request.fixed_batch_sizes).items():
            if id(program) not in files:
                files[id(program)] = f"programs/{len(files)}.jaxexport"
                (directory / files[id(program)]).write_bytes(program)
            programs[name].append({"batch": size, "path": files[id(program)]})
    variables = {name: np.asarray(value, order="C") for name, value in request.variables.items()}
    try:
        save_file(variables, directory / WEIGHTS)
    except Exception as error:
        dtypes = sorted({str(value.dtype) for value in variables.values()})
        raise ExportError(
            f"The variables cannot be written as safetensors: {error!r}. Their dtypes: {dtypes}."
        ) from error
    shutil.copymode(next((directory / "programs").iterdir()), directory / WEIGHTS)  # others may not read it otherwise
    finish(request, directory, "stablehlo", programs, platforms=list(PLATFORMS), variables=WEIGHTS)
