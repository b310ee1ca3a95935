"""An output whose faults do not end the run."""

from __future__ import annotations

from typing import Any, TextIO


class LastingOutput:
    """Writes to a stream, and drops what the stream does not take, as when a terminal is gone or a disk is full.

    Args:
        stream: the stream. Everything except `write` and `flush` is its own.

    Example:
        >>> import io
        >>> stream = io.StringIO()
        >>> output = LastingOutput(stream)
        >>> output.write("half")
        4
        >>> stream.close()
        >>> output.write("more")
        4
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes a text, if the stream takes it."""
        try:
            return self.stream.write(text)
        except (OSError, ValueError):  # ValueError: the stream is closed, or lacks a character
            return len(text)

    def flush(self) -> None:
        """Flushes, if the stream can."""
        try:
            self.stream.flush()
        except (OSError, ValueError):
            return

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
