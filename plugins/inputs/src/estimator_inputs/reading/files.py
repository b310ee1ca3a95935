"""Finds the files of a pattern, and opens them."""

from __future__ import annotations

import bz2
import glob
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from estimator_core.errors import ArgumentError, ArgumentTypeError, InputError
from estimator_core.storage import StorageError, copied_files, is_url
from estimator_inputs.reading.counted import Counted
from estimator_inputs.reading.zlib_stream import open_zlib

#: Compression by the last suffix of a name.
_BY_SUFFIX = {".gz": "gzip", ".gzip": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".lz4": "lz4"}
COMPRESSIONS = ("auto", "none", *sorted({*_BY_SUFFIX.values()}), "zlib")
#: Patterns of the first bytes of compressed files.
_BEGINS = {
    rb"\x1f\x8b": "gzip",
    rb"BZh[1-9]1AY&SY": "bz2",
    rb"\xfd7zXZ\0": "xz",
    rb"\x28\xb5\x2f\xfd": "zstd",
    rb"\x04\x22\x4d\x18": "lz4",
}
_PIECE = 1 << 20
_DOWNLOAD = "Download the file, and pass its path."
_HELP = {
    "http": _DOWNLOAD,
    "https": _DOWNLOAD,
    "ftp": _DOWNLOAD,
    "hf": "Use datasets (pip install datasets): load_dataset(...).with_format('numpy').iter(batch_size) is an input.",
}

FilePattern = str | Path | Sequence[str | Path]


def find_files(file_pattern: FilePattern) -> tuple[Path, ...]:
    """Returns the files of a path, a glob pattern (`**` included) or a list of them, each once, sorted per pattern.

    A `~` at the beginning is the home directory. URLs are copied to a directory that is removed when the process ends.

    Raises:
        ArgumentTypeError: a value is not a path.
        ArgumentError: no file matches a pattern, a path is a directory, or no installed package supports the scheme of
            a URL.
        InputError: the content of a URL cannot be read.

    Example:
        >>> find_files("no-such-*.csv")
        Traceback (most recent call last):
            ...
        estimator_core.errors.ArgumentError: No file matches 'no-such-*.csv'. Check the path or the pattern.
    """
    patterns = [file_pattern] if isinstance(file_pattern, (str, Path)) else file_pattern
    if not isinstance(patterns, Sequence) or not all(isinstance(item, (str, Path)) for item in patterns):
        raise ArgumentTypeError(f"file_pattern must be a path, a pattern or a list of them, given: {file_pattern!r}.")
    if not patterns:
        raise ArgumentError("file_pattern is an empty list: name at least one file.")
    found: dict[Path, None] = {}
    for pattern in patterns:
        if is_url(str(pattern)):  # also for a URL that lost a slash in `Path`
            found.update(dict.fromkeys(_copies(str(pattern))))
            continue
        # a name with a bracket means the file of that name if it exists
        here = os.path.expanduser(pattern)
        paths = [Path(here)] if os.path.exists(here) else _matches(here)
        if not paths:
            raise ArgumentError(f"No file matches {str(pattern)!r}. Check the path or the pattern.")
        for path in paths:
            if path.is_dir():
                raise ArgumentError(f"{path} is a directory: name the files in it, such as {str(path / '*')!r}.")
        found.update(dict.fromkeys(paths))
    return tuple(found)


def compression_of(path: Path, compression: str) -> str:
    """Returns the compression of a file: the argument, or for "auto" the compression that the suffix names.

    Example:
        >>> compression_of(Path("rows.csv.gz"), "auto"), compression_of(Path("rows.csv"), "auto")
        ('gzip', 'none')
    """
    return _BY_SUFFIX.get(path.suffix.lower(), "none") if compression == "auto" else compression


def suffix_of(compression: str) -> str:
    """Returns the suffix that names a compression, or "" if there is none.

    Example:
        >>> suffix_of("gzip"), suffix_of("zlib")
        ('.gz', '')
    """
    return next((suffix for suffix, kind in _BY_SUFFIX.items() if kind == compression), "")


def check_is_text(path: Path, head: bytes) -> None:
    """Refuses a text file that begins as compressed files do.

    Raises:
        InputError: the file is compressed. The message says how to read it.
    """
    for begin, kind in _BEGINS.items():
        if re.match(begin, head, re.DOTALL):
            raise InputError(
                f"{path} has the compression {kind!r}. Set compression={kind!r}, or add the suffix {suffix_of(kind)} "
                "to its name."
            )
    if head.startswith(b"PK\3\4"):
        raise InputError(f"{path} is a zip archive. Extract its files.")


@contextmanager
def opened(path: Path, compression: str, offset: int = 0) -> Generator[BinaryIO]:
    """Opens the decompressed bytes of a file from `offset` on.

    The earlier bytes of a compressed file are read and dropped.

    Raises:
        InputError: the file cannot be read or decompressed. This may also be raised within the block.
    """
    kind = compression_of(path, compression)
    counted: Counted | None = None
    # a local name, because the names of modules are gone when the interpreter ends
    unreadable = (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError)
    try:
        with _open(path, kind) as stream:
            if kind == "none":
                stream.seek(offset)
                yield stream
                return
            counted = Counted(stream)
            while offset > 0:
                offset -= len(counted.read(min(_PIECE, offset))) or offset
            yield cast(BinaryIO, counted)
    except unreadable as error:
        if isinstance(error, InputError):
            raise
        read = 0 if counted is None else counted.position
        what = "" if kind == "none" else f" as {kind} after byte {read:,} of its content"
        raise InputError(f"{path} cannot be read{what}: {error}.") from error


def _open(path: Path, kind: str) -> BinaryIO:
    if kind == "none":
        return open(path, "rb")
    if kind in ("zstd", "lz4"):
        import pyarrow as pa

        return cast(Any, pa).input_stream(str(path), compression=kind)
    if kind == "zlib":
        return open_zlib(path)
    opener = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}[kind]
    return cast(BinaryIO, opener(path, "rb"))


def _copies(url: str) -> list[Path]:
    scheme = url.partition(":")[0].lower()
    if scheme in _HELP:
        raise ArgumentError(f"{url}: files are not read from {scheme}://. {_HELP[scheme]}")
    try:
        return copied_files(url)
    except StorageError as error:
        raise InputError(f"{url} cannot be read: {error}") from error


def _matches(pattern: str) -> list[Path]:
    return sorted(Path(match) for match in glob.glob(pattern, recursive=True))
