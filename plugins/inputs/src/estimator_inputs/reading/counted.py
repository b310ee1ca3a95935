"""A stream that knows how much was read of it, whatever kind of stream lies below."""

from __future__ import annotations

from typing import BinaryIO


class Counted:
    """Bytes of a stream, counted.

    Attributes:
        position: how many bytes were read.

    Example:
        >>> import io
        >>> stream = Counted(io.BytesIO(b"some rows"))
        >>> stream.read(4), stream.position
        (b'some', 4)
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.position = 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most so many; all that are left for -1.

        Raises:
            OSError: the content is damaged.
        """
        try:
            found = self._stream.read(size)
        except SystemError as error:  # pyarrow asks Python for a negative number of bytes of some damaged files
            raise OSError(f"the content is damaged ({error})") from error
        self.position += len(found)
        return found
