"""A stream that counts the bytes that are read from it, for any kind of stream."""

from __future__ import annotations

from typing import BinaryIO


class Counted:
    """Counts the bytes that are read from a stream.

    Attributes:
        position: the number of bytes that were read.

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
        """Reads at most `size` bytes, or all remaining bytes if `size` is -1.

        Raises:
            OSError: the content is damaged.
        """
        try:
            found = self._stream.read(size)
        except SystemError as error:  # for some damaged files, pyarrow requests a negative number of bytes
            raise OSError(f"the content is damaged ({error})") from error
        self.position += len(found)
        return found
