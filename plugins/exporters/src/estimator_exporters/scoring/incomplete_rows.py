"""How training treated incomplete rows. An export contains this record among its assets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from estimator_core.errors import ExportError
from estimator_core.export import LoadedExport

#: The name of the file under `assets/`.
READING = "reading.json"


@dataclass(frozen=True, kw_only=True)
class Treatment:
    """The treatment of incomplete rows.

    Attributes:
        column_defaults: the values for empty fields, by column.
        on_error: "raise" or "skip".
        na_values: the texts of CSV files that mean a missing value, in addition to the empty text.
        field_delim: the character between columns of CSV files. None: a comma, or a tab in .tsv files.
    """

    column_defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    on_error: str = "raise"
    na_values: tuple[str, ...] = ()
    field_delim: str | None = None

    @classmethod
    def of(cls, directory: Path, export: LoadedExport) -> Treatment:
        """Returns the record of an export. Without one, empty fields are not filled in and bad rows are an error.

        Args:
            directory: the directory of the export.
            export: the export that was loaded from the directory, so that its files are verified.

        Raises:
            ExportError: the content of the record is invalid.
        """
        name = f"assets/{READING}"
        if name not in export.manifest.get("files", {}):
            return cls()
        try:
            content = json.loads((directory / name).read_text())
            na_values, field_delim = content.get("na_values", []), content.get("field_delim")
            if not isinstance(na_values, list) or not all(isinstance(text, str) for text in na_values):
                raise TypeError("na_values must be a list of strings")
            if not (field_delim is None or (isinstance(field_delim, str) and len(field_delim) == 1)):
                raise TypeError("field_delim must be one character or null")
            return cls(
                column_defaults=dict(content["column_defaults"]),
                on_error=str(content["on_error"]),
                na_values=tuple(na_values),
                field_delim=field_delim,
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ExportError(
                f"{directory / name} does not say how rows were read: {error!r}. Export again."
            ) from error
