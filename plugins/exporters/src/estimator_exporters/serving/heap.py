"""Memory of large requests goes back to the system once they are answered."""

from __future__ import annotations

import ctypes
import sys

# The numbers of mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGE, _KEPT, _ARENAS = 2**20, 2**24, 2


def return_large_memory() -> None:
    """Sets the allocator of glibc so that a block of 1 MB or more is the system's again as soon as it is free.

    By default it raises that limit to 32 MB once a large block was freed, and keeps a heap for each thread. The bodies
    of large requests then leave holes: a server holds twice the memory that its budget allows, and never returns it.
    Other systems and allocators stay as they are.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # musl
        return
    for name, value in ((_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _KEPT), (_ARENA_MAX, _ARENAS)):
        mallopt(name, value)
