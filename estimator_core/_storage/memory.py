"""Large blocks of memory that go back to the system when they are let go of."""

from __future__ import annotations

import mmap

#: Bytes from which a block is asked of the system; malloc serves smaller ones faster.
_LARGE = 1 << 20
#: All pages at once, if the system can: one call instead of a fault for each page.
_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)


def block(size: int) -> memoryview:
    """Zeroed memory; malloc would keep what a thread has let go of, up to 32 MB for each.

    Example:
        >>> len(block(3)), len(block(2_000_000))
        (3, 2000000)
    """
    return memoryview(mmap.mmap(-1, size, flags=_FLAGS) if size >= _LARGE else bytearray(size))
