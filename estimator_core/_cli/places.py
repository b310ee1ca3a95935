"""Places of this machine that options of commands name."""

from __future__ import annotations

import argparse

from estimator_core._paths import is_url


def local_path(text: str) -> str:
    """The value of an option of a command that works with this machine alone: `add_argument(..., type=local_path)`.

    Raises:
        ArgumentTypeError: it is a URL. A command that took it for a path would write to a folder named `s3:`.

    Example:
        >>> local_path("runs/one")
        'runs/one'
    """
    if is_url(text):
        raise argparse.ArgumentTypeError(f"{text} is a URL, and this command needs a place of this machine")
    return text
