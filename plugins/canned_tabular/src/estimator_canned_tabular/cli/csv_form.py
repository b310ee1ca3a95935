"""The form of CSV files: the character between columns, and the texts that mean no value."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator_canned_tabular.cli.arrow_types import is_parquet
from estimator_core.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class CsvForm:
    """The options of the command line about CSV files.

    Attributes:
        na_values: the texts that mean no value, in addition to the empty one.
        field_delim: the character between columns; None: a comma, or a tab in files called .tsv.
    """

    na_values: tuple[str, ...] = ()
    field_delim: str | None = None

    @classmethod
    def of(cls, args: argparse.Namespace) -> CsvForm:
        """Returns the form that the arguments describe.

        Raises:
            ArgumentError: there is such an option, and no file is CSV.
        """
        form = cls(na_values=tuple(filter(None, args.na_values.split(","))), field_delim=args.field_delim)
        if form != cls() and all(is_parquet(path) for path in (args.csv, args.eval_csv) if path is not None):
            named = "--na-values" if form.na_values else "--field-delim"
            raise ArgumentError(f"{named} is for CSV, but {args.csv} is a Parquet file, where null means no value.")
        return form

    def options(self, path: Path) -> dict[str, Any]:
        """Returns the options for the reader of a file. Parquet has none.

        Example:
            >>> CsvForm(na_values=("NA",)).options(Path("rows.csv"))
            {'na_values': ('', 'NA'), 'quoted_na': True, 'field_delim': None}
        """
        if is_parquet(path):
            return {}
        return {"na_values": ("", *self.na_values), "quoted_na": True, "field_delim": self.field_delim}

    @property
    def told(self) -> list[str]:
        """Returns the option `--na-values` as one word, or an empty list if there are no such texts.

        Example:
            >>> CsvForm(na_values=("-", "?")).told
            ['--na-values=-,?']
        """
        texts = ",".join(self.na_values)
        lone = "," if texts == "--" else ""  # argparse of Python 3.11 loses the value without it
        return [f"--na-values={texts}{lone}"] if texts else []
