"""Streams of zlib, which has no file format of its own. TFRecord files with compression "ZLIB" are such streams."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import BinaryIO, cast

#: The number of compressed bytes that are read at once. They expand to at most a thousand times as many bytes.
_PIECE = 1 << 14


class _Decompressed(io.RawIOBase):
    """The decompressed bytes of a file. Several streams may follow one another, like the members of a gzip file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._stream = zlib.decompressobj()
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Fills at least a part of a buffer. Returns the number of bytes, or 0 at the end."""
        while not self._ready:
            given = self._stream.unused_data or self._file.read(_PIECE)
            if not given:
                if not self._stream.eof:
                    raise EOFError("it ends in the middle of a stream: it is truncated")
                return 0
            if self._stream.eof:
                self._stream = zlib.decompressobj()
            try:
                self._ready = memoryview(self._stream.decompress(given))
            except zlib.error as error:
                raise OSError(str(error)) from error
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
        super().close()


def open_zlib(path: Path) -> BinaryIO:
    """Opens the decompressed bytes of a file.

    Raises:
        OSError, EOFError: while reading: the stream is not a zlib stream, or is truncated.
    """
    return cast(BinaryIO, io.BufferedReader(_Decompressed(path.open("rb")), 1 << 18))
