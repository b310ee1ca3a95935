"""`parquet_input_fn`: batches of the rows of Parquet files."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

from estimator_core.errors import ArgumentError, InputError
from estimator_inputs.reading.blocks import Block, Piece, Place, split_labels
from estimator_inputs.reading.file_input import FileInput
from estimator_inputs.reading.files import FilePattern, find_files
from estimator_inputs.reading.options import ReadOptions, ReadPlan
from estimator_inputs.reading.ragged import Columns
from estimator_inputs.reading.vocabulary import Vocabularies
from estimator_inputs.table.blocks import block_of
from estimator_inputs.table.schema import TableSchema, chosen_columns
from estimator_inputs.table.types import alike, counts_units, inferred, is_period, item_type, unit_of

#: The largest number of rows of a row group that are decoded at once.
_BLOCK_ROWS = 8192
#: The bytes of a column that are read in advance. Without a limit, a whole row group would be read.
_BUFFER = 1 << 18
_DAMAGED = "The file is damaged: write it again."
_MISSING_LIST = "A list of fixed size has no value: write the column as lists of variable size, or leave such rows out."


def parquet_input_fn(
    file_pattern: FilePattern,
    batch_size: int,
    *,
    shuffle: bool,
    label_name: str | None = None,
    select_columns: Sequence[str] | None = None,
    column_types: Mapping[str, Any] | None = None,
    column_defaults: Mapping[str, Any] | Sequence[Any] | None = None,
    vocabularies: Vocabularies | None = None,
    **options: Unpack[ReadOptions],
) -> FileInput:
    """Returns an input_fn over the rows of Parquet files. Each call of it returns a new iterator.

    Lists of one size become [batch, size]. Other lists become [batch, longest], padded as in `tfrecord_input_fn`.

    Args:
        file_pattern: a path, a glob pattern, or a list of them.
        batch_size: rows per batch, in each process.
        shuffle: True for training, False for evaluation and prediction.
        label_name: the column that is the label. None: no label.
        select_columns: the columns to read from disk, including the label. None: all.
        column_types: numpy dtypes, or "string", by column; other types come from the first file in which the column
            has a type other than null, with real numbers as float32. Strings become bytes objects.
        column_defaults: the values of nulls: by column, or a list with one value per column, in order. Without a
            default, a null number makes the row bad, and a null string is empty. The default NaN also pads lists of
            real numbers, instead of 0.
        vocabularies: allowed strings or integers by column; a row with any other value, also in a list, is bad. An
            empty field that becomes b"" is allowed if "" is listed. None: all values are allowed.
        options: see `ReadOptions`; `block_bytes` and `compression` have no effect here.

    Raises:
        ArgumentError, ArgumentTypeError: a file or column does not exist, or a type, default, vocabulary or option is
            invalid.
        InputError: while reading: a file is not Parquet, or a column is missing or has another type than in the first
            file. A value has the wrong type, a token is unknown, or a null has no default. float32 cannot represent an
            integer exactly, and no type is set. The message names file, row and column.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa, pyarrow.parquet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pa.parquet.write_table(pa.table({"age": [31, 52], "y": [0, 1]}), f"{folder}/people.parquet")
        ...     people = parquet_input_fn(f"{folder}/*.parquet", 2, shuffle=False, label_name="y")
        ...     [(features["age"].tolist(), labels.tolist()) for features, labels in people()]
        [([31, 52], [0, 1])]

    Source: `pyarrow.parquet.ParquetFile`.
    """
    plan = ReadPlan.of(batch_size, shuffle, options)
    if plan.compression not in ("auto", "none"):
        raise ArgumentError("compression is part of a Parquet file: leave the argument out.")
    files = find_files(file_pattern)
    arrow = _first_types(files, select_columns)
    found = {name: inferred(one) for name, (one, _) in arrow.items()}
    schema = chosen_columns(
        found, select_columns, column_types, column_defaults, label_name, vocabularies, where=files[0]
    )
    return FileInput(files, ParquetKind(schema, arrow, frozenset(column_types or ())), plan)


class ParquetKind:
    """Reads Parquet files.

    Args:
        schema: the columns to read.
        arrow: the Arrow type of each column, and the file that determines it. Other files must have the same type.
        named: the columns whose types a user sets. They are cast, but lists and units must be the same.
    """

    name = "parquet"

    def __init__(self, schema: TableSchema, arrow: Mapping[str, tuple[Any, Path]], named: Collection[str] = ()) -> None:
        self._schema = schema
        self._arrow = {name: arrow[name] for name in schema.types}
        self._named = named
        self.summary = schema.summary
        self.columns = tuple(schema.types)
        self.varying_shapes = any(kind.listed for kind in schema.types.values())

    def pieces(self, path: Path, place: Place) -> Iterator[Piece]:
        """Yields batches of rows of a row group. A place is (row group, batch in it, row of the file)."""
        names = list(self._schema.types)
        group, skipped, row = place or (0, 0, 0)
        with _opened(path) as file:
            self._schema.check_names(str(path), file.schema_arrow.names)
            while group < file.num_row_groups:
                for number, batch in enumerate(_batches(file, path, group, names)):
                    if number >= skipped:
                        first, row = row, row + batch.num_rows
                        yield Piece(path, (first, batch), [group, number + 1, row])
                group, skipped = group + 1, 0

    def decode(self, piece: Piece, *, all_bad_rows: bool) -> Block:
        """Decodes the rows of a batch."""
        import pyarrow as pa

        first, batch = piece.content
        _check_readable(piece.path, batch.schema, self._schema.types)
        for name, (arrow, path) in self._arrow.items():
            other = batch.schema.field(name).type
            kind = self._schema.types[name]
            units = counts_units(arrow, kind) or counts_units(other, kind)
            same = alike(arrow, other) or not (kind.listed or units or name not in self._named)
            if not same or (units and unit_of(other) not in (unit_of(arrow), None)):
                named = "" if kind.listed or units else ", or name a type in column_types"
                raise InputError(
                    f"{piece.path}: column {name!r} is of type {other}, but of type {arrow} in {path}. "
                    f"Write the files with one type{named}."
                )
        try:
            return block_of(batch, self._schema.types, lambda row: f"{piece.path}, row {first + row}", first=first)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                f"{piece.path}, rows {first} to {first + batch.num_rows - 1}: {self._uncastable(batch, error)}."
            ) from error

    def batch(self, columns: Columns) -> Any:
        """Returns features, and labels if there is a label name."""
        return split_labels(columns, self._schema.label_name)

    def _uncastable(self, batch: Any, error: Exception) -> str:
        import pyarrow as pa

        from estimator_inputs.table.arrays import to_column

        for name, kind in self._schema.types.items():
            try:
                to_column(batch.column(name), kind)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as own:
                return f"column {name!r} cannot be read as {kind.name}: {own}"
        return str(error)


def _first_types(files: Sequence[Path], select_columns: Sequence[str] | None) -> dict[str, tuple[Any, Path]]:
    """Returns the Arrow types of the columns of the first file, each with the file that determines it.

    If a column has the type null there, the next file with another type determines it.
    """
    found: dict[str, tuple[Any, Path]] = {}
    for path in files:
        with _opened(path) as file:
            arrow = {field.name: field.type for field in file.schema_arrow}
        open_ones = [name for name in found if not inferred(found[name][0]).known] if found else list(arrow)
        found |= {name: (arrow[name], path) for name in open_ones if name in arrow}
        needed = found if select_columns is None else select_columns
        if all(name not in found or inferred(found[name][0]).known for name in needed):
            break
    return found


def _check_readable(path: Path, arrow: Any, names: Iterable[str]) -> None:
    """Refuses structs, maps, lists of lists of any size, and periods of pandas, because they cannot become arrays."""
    import pyarrow as pa

    for name in names:
        held = arrow.field(name).type
        if is_period(arrow.field(name)):
            raise InputError(
                f"{path}: column {name!r} holds periods. Write it as times (dt.to_timestamp()), or select other "
                "columns (select_columns, --keep)."
            )
        if pa.types.is_nested(item_type(getattr(held, "storage_type", held))):
            raise InputError(
                f"{path}: column {name!r} holds {held}: select other columns (select_columns, --keep), or split it "
                "into columns."
            )


def _opened(path: Path) -> Any:
    from pyarrow import parquet

    with _clean(f"{path}: its footer cannot be read as Parquet"):
        file = parquet.ParquetFile(
            path, buffer_size=_BUFFER, pre_buffer=False, memory_map=False, page_checksum_verification=True
        )
        _ = file.schema_arrow
        return file


def _batches(file: Any, path: Path, group: int, names: list[str]) -> Iterator[Any]:
    with _clean(f"{path}, row group {group}: cannot be read as Parquet"):
        yield from file.iter_batches(_BLOCK_ROWS, row_groups=[group], columns=names, use_threads=False)


@contextmanager
def _clean(what: str) -> Generator[None]:
    """Converts the errors of Arrow and its decompressors about a damaged file to one error that names the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        told = str(error).strip()
        raise InputError(f"{what}: {told}. {_MISSING_LIST if _of_lists(told) else _DAMAGED}") from error


def _of_lists(told: str) -> bool:
    """Returns whether Arrow refuses lists of one size without a value. Arrow writes such lists but cannot read them."""
    return "all lists to be of size" in told
