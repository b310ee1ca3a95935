"""Keys of objects, relative paths with `/` between the parts, and ranges of their bytes."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from estimator_core.errors import ArgumentError

#: Beginning of the names that storages use for themselves. No part of a key begins with it.
DRAFT = ".draft-"
_LONGEST_KEY, _LONGEST_PART = 900, 255
_REFUSED = re.compile(r"[\x00-\x1f\\\x7f\ud800-\udfff]")


def check_key(key: str) -> str:
    """The key, if every storage can hold it.

    Object stores refuse or change more than file systems do. Azure turns a backslash into `/` and drops the dot at the
    end of a part. S3's lists cannot represent control characters. A bucket's names have at most 1,024 bytes, the prefix
    included.

    Raises:
        ArgumentError: the key is empty, absolute, or longer than 900 bytes. Or it contains a backslash, a control
            character or a surrogate. Or a part is empty, ends in a dot (as `.` and `..` do), begins with `.draft-`, or
            has more than 255 bytes.

    Example:
        >>> check_key("journal/0000000001")
        'journal/0000000001'
        >>> check_key("../other")
        Traceback (most recent call last):
            ...
        estimator_core.errors.ArgumentError: '../other' is not a key: a part must not be empty or end in a dot.
    """
    if fault := _fault(key):
        raise ArgumentError(f"{key[:60]!r} is not a key: {fault}.")
    return key


def is_key(key: str) -> bool:
    """Whether it can be a key.

    Example:
        >>> is_key("a/b"), is_key("a//b")
        (True, False)
    """
    return not _fault(key)


def check_ranges(ranges: Sequence[tuple[int, int]]) -> None:
    """Refuses ranges that no object has.

    Raises:
        ArgumentError: one begins before 0 or after its end.

    Example:
        >>> check_ranges([(0, 4), (4, 4)])
    """
    for begin, end in ranges:
        if not 0 <= begin <= end:
            raise ArgumentError(f"({begin}, {end}) is not a range of bytes: its begin is from 0 to its end.")


@functools.lru_cache(maxsize=1024)
def _fault(key: str) -> str:
    """Why it is not a key; "" if it is one."""
    parts = key.split("/")
    if any(part.endswith(".") or not part for part in parts):
        return "a part must not be empty or end in a dot"
    if any(part.startswith(DRAFT) for part in parts):
        return f"names that begin with {DRAFT!r} belong to the storage"
    if _REFUSED.search(key):
        return "it has a backslash, a control character or a surrogate"
    if len(key.encode()) > _LONGEST_KEY or any(len(part.encode()) > _LONGEST_PART for part in parts):
        return f"it has more than {_LONGEST_KEY} bytes, or {_LONGEST_PART} in a part"
    return ""
