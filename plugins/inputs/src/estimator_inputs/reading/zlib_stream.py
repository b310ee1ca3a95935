"""Streams of zlib, which has no file format of its own: TFRecord files with compression "ZLIB"."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import BinaryIO, cast

#: Compressed bytes taken at once. They expand to at most a thousand times as many bytes.
_PIECE = 1 << 14


class _Decompressed(io.RawIOBase):
    """The decompressed bytes of a file; streams may follow each other, as members of a gzip file do."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._stream = zlib.decompressobj()
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Fills a buffer at least in part; returns 0 at the end."""
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
    """The decompressed bytes of a file.

    Raises:
        OSError, EOFError: while reading: the stream is not zlib, or is truncated.
    """
    return cast(BinaryIO, io.BufferedReader(_Decompressed(path.open("rb")), 1 << 18))
