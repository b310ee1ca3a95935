"""How CSV files are written: what separates columns, and what means no value."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator_canned_tabular.cli.arrow_types import is_parquet
from estimator_core.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class CsvForm:
    """What the command line says of CSV files.

    Attributes:
        na_values: texts that mean no value, beside the empty one.
        field_delim: the character between columns; None: a comma, and a tab in files called .tsv.
    """

    na_values: tuple[str, ...] = ()
    field_delim: str | None = None

    @classmethod
    def of(cls, args: argparse.Namespace) -> CsvForm:
        """What the arguments say.

        Raises:
            ArgumentError: they say something, and no file is CSV; or columns are not separated by one character.
        """
        form = cls(na_values=tuple(args.na_values), field_delim=args.field_delim)
        if form != cls() and all(is_parquet(path) for path in (args.csv, args.eval_csv) if path is not None):
            named = "--na-values" if form.na_values else "--field-delim"
            raise ArgumentError(f"{named} is for CSV, and {args.csv} is a Parquet file, which has null for no value.")
        if form.field_delim is not None and len(form.field_delim.encode()) != 1:
            raise ArgumentError(f"--field-delim must be one ASCII character, given: {form.field_delim!r}.")
        return form

    def options(self, path: Path) -> dict[str, Any]:
        r"""Of the reader of a file: none for Parquet.

        Example:
            >>> CsvForm(na_values=("NA",)).options(Path("rows.tsv"))
            {'na_values': ('', 'NA'), 'field_delim': '\t'}
        """
        if is_parquet(path):
            return {}
        usual = "\t" if ".tsv" in path.suffixes else ","
        return {"na_values": ("", *self.na_values), "field_delim": self.field_delim or usual}
