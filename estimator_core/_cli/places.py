"""Places of this machine that options of commands name."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from estimator_core._paths import is_url


def local_path(text: str) -> str:
    """The value of an option of a command that works with this machine alone: `add_argument(..., type=local_path)`.

    Raises:
        ArgumentTypeError: it is empty, as where a variable of the shell is not set, or a URL. A command that took these
            for paths would write to this directory, or to a folder named `s3:`.

    Example:
        >>> local_path("runs/one")
        'runs/one'
    """
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    if is_url(text):
        raise argparse.ArgumentTypeError(f"{text} is a URL, and this command needs a place of this machine")
    return text


def page_path(text: str) -> str:
    """The value of an option that names a page to write, `add_argument(..., type=page_path)`. The file is replaced.

    Raises:
        ArgumentTypeError: it does not end in .html, so it may be a file with other content; it is a URL; or its
            directory is a file or may not be written. A directory that is not there is made with the page.

    Example:
        >>> page_path("report.html")
        'report.html'
    """
    if not local_path(text).endswith(".html"):
        raise argparse.ArgumentTypeError(f"must end in .html, given: {text}")
    folder = next(each for each in Path(text).parents if each.exists())
    if not folder.is_dir():
        raise argparse.ArgumentTypeError(f"{text} cannot be written: {folder} is a file, not a directory")
    if not os.access(folder, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written: this user may not write to {folder}")
    return text
