"""Directories that users name: a path of this machine, with `~` for the home directory."""

from __future__ import annotations

import os
import re
import unicodedata

from estimator_core.errors import ArgumentError

#: A URL, or one with a single slash, to which `Path` reduces two. A single letter may be a drive.
_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*)://|([A-Za-z][A-Za-z0-9+.-]+):/(?=[^/]))")
_BESIDE_A_HOST = re.compile(r"(?i:~|localhost)/")


def scheme_of(location: str) -> str:
    """Returns the scheme of a URL, in lower case; "" for a path.

    Example:
        >>> scheme_of("S3://bucket/run"), scheme_of("runs/one")
        ('s3', '')
    """
    match = _URL.match(location)
    return (match[1] or match[2]).lower() if match else ""


def located(location: str | os.PathLike[str]) -> str:
    """Returns a path or URL as text. The slash that `Path` removed from a URL is restored.

    Example:
        >>> import pathlib
        >>> located(pathlib.Path("s3://bucket/run")), located("file:/runs/one"), located("runs/one")
        ('s3://bucket/run', 'file:///runs/one', 'runs/one')
    """
    text = os.fspath(location)
    match = _URL.match(text)
    if match is None or match[1]:
        return text
    rest = text[match.end() :]
    host = "/" if match[2].lower() == "file" and not _BESIDE_A_HOST.match(rest) else ""
    return f"{match[2]}://{host}{rest}"


def is_url(location: str) -> bool:
    """Returns whether a location is a URL and not a path.

    Example:
        >>> is_url("s3://bucket/run"), is_url("s3:/bucket/run"), is_url("runs/one")
        (True, True, False)
    """
    return scheme_of(location) != ""


def expanded(location: str) -> str:
    """Returns a path with `~` expanded, or a URL with both slashes.

    Example:
        >>> expanded("s3://bucket/~name")
        's3://bucket/~name'
    """
    return located(location) if is_url(location) else os.path.expanduser(location)


def on_one_line(what: str, location: str) -> str:
    """Returns the location, which tables and logs can show unchanged.

    Raises:
        ArgumentError: the location has a line break or a control character.

    Example:
        >>> on_one_line("model_dir", "runs/one")
        'runs/one'
    """
    if any(unicodedata.category(one) in ("Cc", "Zl", "Zp") for one in location):
        raise ArgumentError(f"{what} has a line break or a control character, given: {location!r}.")
    return location


def local_directory(argument: str, path: str) -> str:
    """Returns the path of a directory, with `~` expanded.

    Args:
        argument: the name of the argument, for messages.
        path: the value of the user.

    Raises:
        ArgumentError: the value is a URL. Without this check a folder named `gs:` would appear, and the run would write
            there.

    Example:
        >>> local_directory("model_dir", "runs/one")
        'runs/one'
    """
    if scheme := scheme_of(path):
        raise ArgumentError(
            f"{argument} is {path!r}, but {scheme}:// is not supported: a directory of this machine is needed. Mount "
            "the bucket, or train into a local directory and copy it."
        )
    return os.path.expanduser(path)
