"""Returns the memory of large requests to the system after they are answered."""

from __future__ import annotations

import ctypes
import sys

# The parameter numbers of mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGE, _KEPT, _ARENAS = 2**20, 2**24, 2


def return_large_memory() -> None:
    """Configures the allocator of glibc so that a freed block of 1 MB or more returns to the system at once.

    By default, glibc raises that limit to 32 MB after a large block was freed, and keeps a heap for each thread. The
    bodies of large requests then leave holes. A server would hold twice the memory of its budget, and would never
    return it. Other systems and allocators are not changed.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # musl
        return
    for name, value in ((_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _KEPT), (_ARENA_MAX, _ARENAS)):
        mallopt(name, value)
