"""`jsonl_input_fn`: batches of the rows of files of JSON lines."""

from __future__ import annotations

import functools
import itertools
import json as standard_json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from estimator_core.errors import InputError
from estimator_inputs.reading.blocks import BadRow, Block, Piece, Place, joined, split_labels
from estimator_inputs.reading.file_input import FileInput
from estimator_inputs.reading.files import FilePattern, check_is_text, find_files, opened
from estimator_inputs.reading.options import ReadOptions, ReadPlan
from estimator_inputs.reading.ragged import Columns, join
from estimator_inputs.reading.vocabulary import Vocabularies
from estimator_inputs.table.blocks import Tables, block_of
from estimator_inputs.table.schema import TableSchema, chosen_columns, types_of_files
from estimator_inputs.table.types import STRING, ColumnType, inferred
from estimator_inputs.text.chunks import Chunk, read_chunks
from estimator_inputs.text.json_table import (
    as_numbers,
    is_object,
    json_table,
    json_what_can_be,
    of_one_type,
    other_form,
)

_HEAD = 1 << 18
#: The bytes that are read at once to find the first value of a key.
_PIECE = 1 << 20


def jsonl_input_fn(
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
    r"""Returns an input_fn over files with one JSON object per line. Each call of it returns a new iterator.

    Lists become [batch, longest], padded as in `tfrecord_input_fn`.

    Args:
        file_pattern: a path, a glob pattern, or a list of them.
        batch_size: rows per batch, in each process.
        shuffle: True for training, False for evaluation and prediction.
        label_name: the key that is the label. None: no label.
        select_columns: the keys to read, including the label. None: all keys in the first lines of the first file.
        column_types: numpy dtypes, or "string", by key; other types are inferred from the first lines, with real
            numbers as float32. For keys without a value there, these are the next lines that have one. They are
            searched in the first 16 MiB of this file, and in the first MiB of later ones.
            With on_error="skip", the most frequent type of the values of a key counts; without it, several types are an
            error. Strings become bytes objects. Among numbers, and for a float type, "NaN", "Infinity" and "-Infinity"
            are read as numbers.
        column_defaults: the value for a key that is missing or null: by key, or a list with one value per key. Without
            a default, a missing number makes the row bad, and a missing string is empty. The default NaN also pads
            lists of real numbers, instead of 0.
        vocabularies: allowed strings or integers by key; a row with any other value, also in a list, is bad. An empty
            field that becomes b"" is allowed if "" is listed. None: all values are allowed.
        options: see `ReadOptions`.

    Raises:
        ArgumentError, ArgumentTypeError: a file or key does not exist, or a type, default, vocabulary or option is
            invalid.
        InputError: while reading: a line is not a JSON object, a value has the wrong type, a token is unknown, or a
            number is missing. The message names file, line and key.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "people.jsonl").write_text('{"age": 31}\n{"age": 52}\n')
        ...     people = jsonl_input_fn(f"{folder}/*.jsonl", 2, shuffle=False)
        ...     [batch["age"].tolist() for batch in people()]
        [[31, 52]]

    Source: `pyarrow.json.read_json`.
    """
    plan = ReadPlan.of(batch_size, shuffle, options)
    files = find_files(file_pattern)
    look = functools.partial(_infer, plan=plan, named=column_types or ())
    schema = chosen_columns(
        types_of_files(files, look, select_columns),
        select_columns,
        column_types,
        column_defaults,
        label_name,
        vocabularies,
        where=files[0],
    )
    return FileInput(files, JsonLinesKind(schema, plan), plan)


class JsonLinesKind:
    """Reads files of JSON lines."""

    name = "jsonl"

    def __init__(self, schema: TableSchema, plan: ReadPlan) -> None:
        self.schema = schema
        self._plan = plan
        self.summary = schema.summary
        self.columns = tuple(schema.types)
        self.varying_shapes = any(kind.listed for kind in schema.types.values())

    def pieces(self, path: Path, place: Place) -> Iterator[Piece]:
        """Yields blocks of whole lines. A place is (byte offset, line, row)."""
        offset, line, row = place or (0, 1, 0)
        with opened(path, self._plan.compression, offset) as stream:
            for chunk in read_chunks(
                stream,
                block_bytes=self._plan.block_bytes,
                quoting=None,
                offset=offset,
                line=line,
                row=row,
                count_rows=self._plan.hold_out_every is not None,
            ):
                yield Piece(path, chunk, list(chunk.after))

    def tables(self, piece: Piece, *, all_bad_rows: bool) -> Tables:
        """Returns the rows of a block before missing values and vocabularies are checked."""
        import pyarrow as pa

        chunk: Chunk = piece.content
        if chunk.fault is not None:
            return Tables([], [BadRow(f"{piece.path}, line {chunk.line}", chunk.fault)])
        if not chunk.data.strip():
            return Tables([])
        where = _Lines(piece.path, chunk)
        try:
            return Tables([(json_table(chunk.data, self.schema.types), where.of_rows([]))])
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            found, faulty = json_what_can_be(chunk.data, self.schema.types, first_only=not all_bad_rows)
        bad = [BadRow(where(line), text) for line, text in faulty]
        return Tables([(table, where.of_rows(lines)) for table, lines in found], bad)

    def decode(self, piece: Piece, *, all_bad_rows: bool) -> Block:
        """Decodes the rows of a block."""
        first: int = piece.content.row
        found, bad = self.tables(piece, all_bad_rows=all_bad_rows)
        blocks = [block_of(table, self.schema.types, where) for table, where in found]
        good = [block.columns for block in blocks if block.rows]
        rows = sum(block.rows for block in blocks)
        ordered = sorted([*bad, *(row for block in blocks for row in block.bad)], key=lambda row: row.number)
        return Block(columns=join(good) if good else {}, rows=rows, bad=ordered, first=first, where=joined(blocks))

    def batch(self, columns: Columns) -> Any:
        """Returns features, and labels if there is a label name."""
        return split_labels(columns, self.schema.label_name)


class _Lines:
    """Names the lines of a chunk."""

    def __init__(self, path: Path, chunk: Chunk) -> None:
        self._path = path
        self._chunk = chunk

    def __call__(self, line: int) -> str:
        return f"{self._path}, line {self._chunk.line + line}"

    def of_rows(self, lines: list[int]) -> Any:
        """Returns a function from the number of a row to its file and line.

        Without `lines`, rows are the non-empty lines.
        """

        def where(row: int) -> str:
            return self((lines or self._filled)[row])

        return where

    @functools.cached_property
    def _filled(self) -> list[int]:
        return [n for n, text in enumerate(self._chunk.data.split(b"\n")) if text.strip()]


def _infer(
    path: Path, chosen: Collection[str] | None, most: int, *, plan: ReadPlan, named: Collection[str]
) -> dict[str, ColumnType]:
    """Returns the types that the first lines determine.

    If a key has no value there, the next piece of the file that has one determines its type, up to `most` bytes.
    """
    with opened(path, plan.compression) as stream:
        head = stream.read(_HEAD)
        end = head.rfind(b"\n") + 1
        head, rest = (head[:end], head[end:]) if end else (head + stream.read(), b"")
        if not head.strip():
            return {}
        types_of = functools.partial(_types_of_lines, path, named=named, skip=plan.on_error == "skip")
        found = types_of(head, chosen)
        needed = set(found if chosen is None else chosen).difference(named)
        while most > 0 and (open_ones := [name for name in found if name in needed and not found[name].known]):
            piece = stream.read(_PIECE)
            rest, most = rest + piece, most - len(piece)
            end = rest.rfind(b"\n") + 1 if piece else len(rest)
            if rest[:end].strip():
                types = types_of(rest[:end], open_ones)
                found |= {name: types[name] for name in open_ones if name in types}
            if not piece:
                break
            rest = rest[end:]
    return found


def _types_of_lines(
    path: Path, head: bytes, chosen: Collection[str] | None, *, named: Collection[str], skip: bool
) -> dict[str, ColumnType]:
    """Returns the types of keys. A key may have several types if it is not read, or has a named type.

    If bad rows are skipped, the values of the most frequent type determine the type, and other values are bad rows.
    """
    import pyarrow as pa

    whole = head.lstrip().partition(b"\n")[0].rstrip().endswith(b"}")  # Arrow may read an object over several lines
    try:
        if whole:
            return _types_of(head)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        pass
    check_is_text(path, head)
    other = other_form(head)
    if other is not None:
        raise InputError(f"{path}: {other}")
    columns: dict[str, list[Any]] = {}
    for row in (standard_json.loads(line) for line in head.split(b"\n") if is_object(line)):  # bad rows have no types
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    found: dict[str, ColumnType] = {}
    for name, column in columns.items():
        if chosen is not None and name not in chosen:
            found[name] = ColumnType(dtype=STRING)  # the key is not read
            continue
        values = as_numbers(of_one_type(column) if skip else column)
        try:
            found |= _types_of("".join(standard_json.dumps({name: value}) + "\n" for value in values).encode())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            if name not in named:
                raise InputError(
                    f"{path}: the lines that determine the types are not JSON objects of the same types: {error}. "
                    f"Write all values of {name!r} with one type. A program can also set its type in column_types, "
                    'leave it out with select_columns, or skip the lines of rarer types (on_error="skip").'
                ) from error
            found[name] = ColumnType(dtype=STRING, listed=any(isinstance(value, list) for value in values))
    return found


def _types_of(lines: bytes) -> dict[str, ColumnType]:
    import pyarrow as pa
    from pyarrow import json

    options = json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    table = json.read_json(pa.BufferReader(lines), options)
    found = {field.name: inferred(field.type) for field in table.schema}
    wide = [name for name, kind in found.items() if kind.dtype.kind == "f" and _is_wide(table.column(name))]
    if wide:
        rows = [standard_json.loads(line) for line in lines.split(b"\n") if is_object(line)]
        found |= {name: _whole_kind([row.get(name) for row in rows], found[name]) for name in wide}
    return found


def _is_wide(column: Any) -> bool:
    """Returns whether some real numbers are as large as integers that int64 cannot represent."""
    import pyarrow as pa

    array = column.combine_chunks()
    while pa.types.is_nested(array.type):
        array = array.flatten()
    return bool((np.abs(array.drop_null().to_numpy(zero_copy_only=False)) >= 2.0**63).any())


def _whole_kind(values: Sequence[Any], kind: ColumnType) -> ColumnType:
    """Returns the type of numbers that Arrow reads as real. Integers out of the range of int64 stay integers."""
    numbers = list(itertools.chain.from_iterable(filter(None, values))) if kind.listed else values
    known = [number for number in numbers if number is not None]
    if not known or not all(isinstance(number, int) for number in known):
        return kind
    signed = kind.listed or min(known) < 0
    return replace(kind, dtype=np.dtype(np.int64 if signed else np.uint64), exact=False)
