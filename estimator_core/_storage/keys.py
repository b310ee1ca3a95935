"""Keys of objects: relative paths with `/` between the parts."""

from __future__ import annotations

from estimator_core.errors import ArgumentError


def check_key(key: str) -> str:
    """The key, if it can be one.

    Raises:
        ArgumentError: it is empty or absolute, has an empty part, `.`, `..` or a NUL, or is longer than 900 bytes.

    Example:
        >>> check_key("journal/0000000001")
        'journal/0000000001'
        >>> check_key("../other")
        Traceback (most recent call last):
            ...
        estimator_core.errors.ArgumentError: '../other' is not a key: its parts must not be empty, '.' or '..'.
    """
    if any(part in ("", ".", "..") for part in key.split("/")):
        raise ArgumentError(f"{key!r} is not a key: its parts must not be empty, '.' or '..'.")
    if "\0" in key or len(key.encode("utf-8", "surrogatepass")) > 900:
        raise ArgumentError(f"{key[:60]!r} is not a key: a key has no NUL and at most 900 bytes.")
    return key
