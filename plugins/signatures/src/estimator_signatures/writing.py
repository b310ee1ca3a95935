"""Writes the export of a request, reads it back and checks it before it is published."""

from __future__ import annotations

import os
from pathlib import Path

from estimator_core.errors import ExportError
from estimator_core.export import ChecksRequest, ExportCheck, ExportFormat, ExportRequest, LoadedExport, new_export
from estimator_signatures.verify import verify
from estimator_signatures.without_paths import without_paths


def write_export(
    request: ExportRequest, chosen: ExportFormat, base: str | os.PathLike[str], check: ExportCheck
) -> Path:
    """Writes an export, reads it back, compares it with its original functions, and publishes it.

    The lowered programs do not contain the paths of the sources.

    Args:
        request: the request for the export.
        chosen: the format of the export.
        base: the directory in which the export gets its time-stamped name.
        check: the comparison for each output.

    Returns:
        The directory of the export.

    Raises:
        ExportError: the export cannot be written or read back, or returns other outputs. No file is left on disk.
    """
    with new_export(base) as (directory, final):
        with without_paths():
            chosen.write(request, directory)
        verify(request, _read_back(chosen, directory), check)
    return final[0]


def check_request(request: ExportRequest, chosen: ExportFormat) -> None:
    """Lets the format check the request, if the format supports a check before it writes.

    Raises:
        ExportError: the format cannot represent the request.
    """
    if isinstance(chosen, ChecksRequest):
        with without_paths():
            chosen.check(request)


def _read_back(chosen: ExportFormat, directory: Path) -> LoadedExport:
    try:
        return chosen.load(directory)
    except Exception as error:
        raise ExportError(
            f"The export format {chosen.name!r} cannot read back what it wrote ({type(error).__name__}: {error}). "
            "Nothing is published; this is an error of the format."
        ) from error
