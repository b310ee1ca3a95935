"""Directories that users name: a path of this machine, with `~` for the home directory."""

from __future__ import annotations

import os
import re

from estimator_core.errors import ArgumentError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def local_directory(argument: str, path: str) -> str:
    """The path of a directory, with `~` expanded.

    Args:
        argument: the name of the argument, for messages.
        path: what the user gave.

    Raises:
        ArgumentError: it is a URL. Without this check a folder named `gs:` would appear, and the run would write there.

    Example:
        >>> local_directory("model_dir", "runs/one")
        'runs/one'
    """
    if match := _URL.match(path):
        raise ArgumentError(
            f"{argument} is {path!r}, but {match[1]}:// is not supported: a directory of this machine is needed. Mount "
            "the bucket, or train into a local directory and copy it."
        )
    return os.path.expanduser(path)
