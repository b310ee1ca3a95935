"""`csv_input_fn`: batches of the rows of CSV files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from estimator_core.errors import ArgumentError, InputError
from estimator_inputs.reading.blocks import BadRow, Block, Piece, Place, joined, split_labels
from estimator_inputs.reading.file_input import FileInput
from estimator_inputs.reading.files import FilePattern, compression_of, find_files, opened
from estimator_inputs.reading.options import ReadOptions, ReadPlan
from estimator_inputs.reading.ragged import Columns, join
from estimator_inputs.reading.vocabulary import Vocabularies
from estimator_inputs.table.blocks import Tables, block_of
from estimator_inputs.table.schema import TableSchema, chosen_columns, types_of_files
from estimator_inputs.table.types import ColumnType, check_names
from estimator_inputs.text.chunks import Chunk, Quoting, read_chunks
from estimator_inputs.text.csv_header import begin_of, infer_types, read_header
from estimator_inputs.text.csv_table import CsvFormat, read_table, read_what_can_be
from estimator_inputs.text.quotes import record_ends


def csv_input_fn(
    file_pattern: FilePattern,
    batch_size: int,
    *,
    shuffle: bool,
    label_name: str | None = None,
    column_names: Sequence[str] | None = None,
    select_columns: Sequence[str] | None = None,
    column_types: Mapping[str, Any] | None = None,
    column_defaults: Mapping[str, Any] | Sequence[Any] | None = None,
    vocabularies: Vocabularies | None = None,
    header: bool = True,
    field_delim: str | None = None,
    use_quote_delim: bool = True,
    na_values: Sequence[str] | Mapping[str, Sequence[str]] = ("",),
    quoted_na: bool = False,
    num_rows_for_inference: int = 100,
    **options: Unpack[ReadOptions],
) -> FileInput:
    r"""Returns an input_fn over the rows of CSV files. Each call of it returns a new iterator.

    Args:
        file_pattern: a path, a glob pattern, or a list of them.
        batch_size: rows per batch, in each process.
        shuffle: True for training, False for evaluation and prediction.
        label_name: the column that is the label. None: no label.
        column_names: the names of the columns, for files without a header or to replace it.
        select_columns: the columns to read, including the label; None: all.
        column_types: numpy dtypes, or "string", by column; types of other columns are inferred. Strings become bytes
            objects.
        column_defaults: the values of empty fields: by column, or a list with one value per column, in order. None in
            it means no default. Without a default, an empty number makes the row bad, and an empty string stays empty.
        vocabularies: allowed strings or integers by column; a row with any other value, also in a list, is bad. An
            empty field that becomes b"" is allowed if "" is listed. None: all values are allowed.
        header: whether each file begins with its column names. The order may differ between files.
        field_delim: one ASCII character. None: a comma, or a tab if the first file is a `.tsv` file.
        use_quote_delim: whether fields may be quoted with `"`.
        na_values: texts that count as empty if they are not quoted: one list, or a dict by column. In a column that is
            not in the dict, only the empty text counts.
        quoted_na: whether these texts also count as empty in quotes.
        num_rows_for_inference: the number of rows of the first file that determine the types. For columns without a
            value there, these are the next rows that have one. They are searched in the first 16 MiB of this file, and
            in the first MiB of later ones.
        options: see `ReadOptions`.

    Raises:
        ArgumentError, ArgumentTypeError: a file or column does not exist, or a type, default, vocabulary or option is
            invalid.
        InputError: while reading: a column is missing, the number of fields differs, a value has the wrong type, a
            token is unknown, a quote is misplaced, or bytes are not UTF-8. The message names file, line and column.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "people.csv").write_text("name,age\nann,31\nbob,\n")
        ...     people = csv_input_fn(f"{folder}/*.csv", 2, shuffle=False, column_defaults={"age": 0})
        ...     [(batch["name"].tolist(), batch["age"].tolist()) for batch in people()]
        [([b'ann', b'bob'], [31, 0])]

    Source: `tf.data.experimental.make_csv_dataset`.
    """
    plan = ReadPlan.of(batch_size, shuffle, options)
    if not header and column_names is None:
        raise ArgumentError("column_names must be given for files without a header (header=False).")
    files = find_files(file_pattern)
    form = CsvFormat(
        delimiter=_delimiter(field_delim, files[0]),
        quote=b'"' if use_quote_delim else None,
        na_values=na_values if isinstance(na_values, (str, Mapping)) else tuple(na_values),
        quoted_na=quoted_na,
    )
    kind = CsvKind(form, header=header, column_names=column_names, plan=plan)
    look = functools.partial(kind.infer, rows=num_rows_for_inference, named=column_types or ())
    found = types_of_files(files, look, select_columns, column_types or ())
    if isinstance(na_values, Mapping):
        check_names("na_values", na_values, found, str(files[0]))
    kind.schema = chosen_columns(
        found,
        select_columns,
        column_types,
        column_defaults,
        label_name,
        vocabularies,
        where=files[0],
    )
    return FileInput(files, kind, plan)


def _delimiter(given: str | None, first: Path) -> bytes:
    named = first.with_suffix("") if compression_of(first, "auto") != "none" else first
    chosen = given if given is not None else "\t" if named.suffix.lower() == ".tsv" else ","
    if len(chosen) != 1 or not chosen.isascii() or chosen in '\r\n"':
        raise ArgumentError(
            f"field_delim must be one ASCII character other than a quote or a line end, given: {given!r}."
        )
    return chosen.encode()


class CsvKind:
    """Reads CSV files."""

    name = "csv"
    varying_shapes = False
    schema: TableSchema

    def __init__(self, form: CsvFormat, *, header: bool, column_names: Sequence[str] | None, plan: ReadPlan) -> None:
        self._form = form
        self._header = header
        self._column_names = None if column_names is None else list(column_names)
        self._plan = plan
        self._quoting = None if form.quote is None else Quoting(form.quote, form.delimiter)

    @property
    def summary(self) -> str:
        """The names of the columns with their types."""
        return self.schema.summary

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.schema.types)

    def infer(
        self, path: Path, chosen: Collection[str] | None, most: int, *, rows: int, named: Collection[str]
    ) -> dict[str, ColumnType]:
        """Returns all columns of a file, with the types that its first rows determine.

        Args:
            path: the path of the file.
            chosen: the columns to read. None: all.
            most: see `infer_types`.
            rows: the number of rows to use.
            named: the columns whose types a user names, so that they need no value.
        """
        names, place = self._names(path)
        needed = set(names if chosen is None else chosen).difference(named)
        with opened(path, self._plan.compression, place[0]) as stream:
            return infer_types(stream, names, self._form, rows=rows, needed=needed, most=most)

    def pieces(self, path: Path, place: Place) -> Iterator[Piece]:
        """Yields blocks of whole records. A place is (byte offset, line, row)."""
        names, start = self._names(path)
        self.schema.check_names(f"{path}, line 1", names)
        offset, line, row = place or (*start, 0)
        with opened(path, self._plan.compression, offset) as stream:
            for chunk in read_chunks(
                stream,
                block_bytes=self._plan.block_bytes,
                quoting=self._quoting,
                offset=offset,
                line=line,
                row=row,
                count_rows=self._plan.hold_out_every is not None,
            ):
                yield Piece(path, (names, chunk), list(chunk.after))

    def tables(self, piece: Piece, *, all_bad_rows: bool) -> Tables:
        """Returns the rows of a block before missing values and vocabularies are checked."""
        import pyarrow as pa

        names: list[str]
        chunk: Chunk
        names, chunk = piece.content
        if chunk.fault is not None:
            return Tables([], [BadRow(f"{piece.path}, line {chunk.line}", chunk.fault)])
        if not chunk.data.strip(b"\r\n"):
            return Tables([])
        types = self.schema.types
        where = _Lines(piece.path, chunk, self._form.quote)
        try:
            return Tables([(read_table(chunk.data, names, types, self._form), where.of_row)])
        except pa.ArrowInvalid:
            pass
        tables, faulty = read_what_can_be(chunk.data, names, types, self._form, first_only=not all_bad_rows)
        found = [(table, where.of_begins(begins)) for table, begins in tables]
        return Tables(found, [BadRow(where(fault.begin), fault.text) for fault in faulty])

    def decode(self, piece: Piece, *, all_bad_rows: bool) -> Block:
        """Decodes the rows of a block."""
        first: int = piece.content[1].row
        found, bad = self.tables(piece, all_bad_rows=all_bad_rows)
        blocks = [block_of(table, self.schema.types, where, first=first) for table, where in found]
        if len(blocks) == 1 and not bad:
            return blocks[0]
        good: list[Columns] = [block.columns for block in blocks if block.rows]
        rows = sum(block.rows for block in blocks)
        ordered = sorted([*bad, *(row for block in blocks for row in block.bad)], key=lambda row: row.number)
        return Block(columns=join(good) if good else {}, rows=rows, bad=ordered, first=first, where=joined(blocks))

    def batch(self, columns: Columns) -> Any:
        """Returns features, and labels if there is a label name."""
        return split_labels(columns, self.schema.label_name)

    def _names(self, path: Path) -> tuple[list[str], tuple[int, int]]:
        """Returns the names of the columns of a file, and the place (byte offset, line) where its records begin."""
        if not self._header:
            assert self._column_names is not None
            with opened(path, self._plan.compression) as stream:
                return self._column_names, (begin_of(stream, path), 1)
        with opened(path, self._plan.compression) as stream:
            names, place = read_header(stream, self._form, path, replaced=self._column_names is not None)
        if self._column_names is None:
            return names, place
        if len(self._column_names) != len(names):
            raise InputError(
                f"{path}, line 1: {len(names)} columns ({', '.join(names)}), but column_names has "
                f"{len(self._column_names)}."
            )
        return self._column_names, place


class _Lines:
    """Names the lines of a chunk. The line ends are searched only once, because there may be many bad rows."""

    def __init__(self, path: Path, chunk: Chunk, quote: bytes | None) -> None:
        self._path = path
        self._chunk = chunk
        self._quote = quote

    def __call__(self, begin: int) -> str:
        """Returns the file and line of the record that begins at byte `begin` of the chunk."""
        return f"{self._path}, line {self._chunk.line + int(np.searchsorted(self._newlines, begin))}"

    def of_row(self, row: int) -> str:
        """Returns the file and line of a row if all non-empty records are rows."""
        return self(self._filled[row])

    def of_begins(self, begins: np.ndarray) -> Callable[[int], str]:
        """Returns a function from the number of a row to its file and line, for rows that begin at `begins`."""
        return lambda row: self(int(begins[row]))

    @functools.cached_property
    def _newlines(self) -> np.ndarray:
        return record_ends(self._chunk.data, None) - 1

    @functools.cached_property
    def _filled(self) -> list[int]:
        data = self._chunk.data
        begins = np.append(0, record_ends(data, self._quote)).tolist()
        return [b for b, e in zip(begins, [*begins[1:], len(data)], strict=True) if data[b:e].strip(b"\r\n")]
