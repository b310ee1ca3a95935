"""Types of command-line options for paths on this machine."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from estimator_core._files import is_url


def local_path(text: str) -> str:
    """Checks an option that must be a local path: `add_argument(..., type=local_path)`.

    Raises:
        ArgumentTypeError: the value is empty, for example from an unset shell variable, or a URL. As paths, these would
            name the current directory, or a folder `s3:`.

    Example:
        >>> local_path("runs/one")
        'runs/one'
    """
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    if is_url(text):
        raise argparse.ArgumentTypeError(f"{text} is a URL, but this command needs a path on this machine")
    return text


def page_path(text: str) -> str:
    """Checks an option for a page to write: `add_argument(..., type=page_path)`. The file is replaced.

    Raises:
        ArgumentTypeError: the value does not end in .html, so it may be a file with other content. Or it is a URL, or
            its directory is a file or cannot be written. A missing directory is created with the page.

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
