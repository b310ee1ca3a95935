"""The selection of table columns, and their types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError, InputError
from estimator_inputs.reading.vocabulary import Vocabularies
from estimator_inputs.table.types import (
    ColumnType,
    check_names,
    column_type,
    summary_of,
    with_defaults,
    with_vocabularies,
)

#: The bytes in which the first value of a column is searched: in the first file with rows, and in each later file.
#: A column that is always empty is searched in all files.
_FIRST, _LATER = 1 << 24, 1 << 20


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """The columns to read.

    Attributes:
        types: the types by name, including the label.
        label_name: the column that is the label, or None.
        first: the file whose columns are read, if all of them are. None: the columns are selected.
    """

    types: Mapping[str, ColumnType]
    label_name: str | None
    first: Path | None = None

    @property
    def summary(self) -> str:
        """The names and types of the columns, for the fingerprint of a position."""
        return summary_of(self.types)

    def check_names(self, where: str, names: Sequence[str]) -> None:
        """Refuses a file with other columns.

        Args:
            where: the file, for the message.
            names: the names of its columns.

        Raises:
            InputError: a column to read is missing or occurs twice, or a column would be left out although all columns
                are read.
        """
        listed = ", ".join(names)
        for name in self.types:
            if name not in names:
                raise InputError(
                    f"{where}: column {name!r} is missing. Its columns are: {listed}. Add the column. A program "
                    "can also select the columns that all files have (select_columns)."
                )
            if names.count(name) > 1:
                raise InputError(f"{where}: two columns are named {name!r}. Rename one.")
        more = [name for name in names if name not in self.types]
        if self.first is not None and more:
            raise InputError(
                f"{where}: column {more[0]!r} is not in {self.first}, whose columns are: {', '.join(self.types)}. "
                "Remove the column. A program can also select the columns to read (select_columns)."
            )


def types_of_files(
    files: Sequence[Path],
    look: Callable[[Path, Collection[str] | None, int], Mapping[str, ColumnType]],
    select_columns: Sequence[str] | None = None,
    named: Collection[str] = (),
) -> dict[str, ColumnType]:
    """Returns the columns of the first file with rows. The first file with a value in a column determines its type.

    Args:
        files: the files, in order. Later ones are looked at only if a type is not known yet.
        look: returns the types that the first rows of a file determine, or nothing if it has no rows. It receives the
            columns whose types are needed, or None for all, and the bytes in which it searches their first values.
        select_columns: the columns whose types are needed. None: all.
        named: the columns whose types a user names, so that they need no value.

    Raises:
        InputError: no file has rows.
    """
    found: dict[str, ColumnType] = {}
    for path in files:
        needed = set(found if select_columns is None else select_columns).difference(named)
        open_ones = {name for name, kind in found.items() if not kind.known and name in needed}
        if found and not open_ones:
            break
        types = look(path, open_ones, _LATER) if found else look(path, select_columns, _FIRST)
        found |= {name: types[name] for name in types if not found or (name in open_ones and types[name].known)}
    if not found:
        raise InputError(f"{files[0]} has no rows{', nor has any other file' if files[1:] else ''}.")
    return found


def chosen_columns(
    found: Mapping[str, ColumnType],
    select_columns: Sequence[str] | None,
    column_types: Mapping[str, Any] | None,
    column_defaults: Mapping[str, Any] | Sequence[Any] | None,
    label_name: str | None,
    vocabularies: Vocabularies | None = None,
    *,
    where: Path,
) -> TableSchema:
    """Returns the columns to read among those of the file `where`.

    Raises:
        ArgumentError, ArgumentTypeError: a column is missing, or a type, default or vocabulary is invalid.
    """
    wanted = list(found) if select_columns is None else list(select_columns)
    check_names("select_columns", wanted, found, str(where))
    if not wanted or len(set(wanted)) != len(wanted):
        raise ArgumentError(f"select_columns must name columns, each once, given: {wanted}.")
    if label_name is not None:
        check_names("label_name", [label_name], wanted, str(where))
    given = {} if column_types is None else dict(column_types)
    check_names("column_types", given, found, str(where))
    for argument, names in (("column_defaults", column_defaults), ("vocabularies", vocabularies)):
        if isinstance(names, Mapping):
            check_names(argument, names, wanted, str(where))
    types = {name: found[name] for name in wanted}
    for name in wanted:
        if name in given:
            types[name] = _named(name, given[name], found[name])
    types = with_vocabularies(with_defaults(types, column_defaults), vocabularies)
    return TableSchema(types=types, label_name=label_name, first=where if select_columns is None else None)


def _named(name: str, given: Any, found: ColumnType) -> ColumnType:
    """Returns the type that a user set. It is a list type if the column contains lists."""
    kind = replace(column_type(name, given), listed=found.listed, sizes=found.sizes)
    if kind.listed and not kind.sizes and kind.dtype.kind == "u":
        raise ArgumentError(
            f"column_types[{name!r}] is {kind.dtype}: short lists are padded with -1, which it cannot hold. Use an int."
        )
    return kind
