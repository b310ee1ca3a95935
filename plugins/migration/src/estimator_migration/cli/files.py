"""Reads and writes the Python files that a user names, with their encoding, byte-order mark and line ends."""

from __future__ import annotations

import contextlib
import io
import os
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from estimator_core.errors import ArgumentError

#: The endings of Python files. A script may have none.
_ENDINGS = (".py", ".pyw", "")
#: The reason to leave out a file that Python itself may be able to run.
TOO_DEEP = "one of its expressions is nested too deeply; assign parts of it to variables"
_DEEPEST = 200
_CODING = "Save it as UTF-8, or name its encoding in the first line: # -*- coding: latin-1 -*-"


class UnreadableError(ArgumentError):
    """A file that cannot be read as text. The message does not name it."""


@dataclass(frozen=True, kw_only=True)
class PythonFile:
    """A Python file.

    Args:
        path: the path, as the user wrote it.
        source: the text, with the line ends of the file.
        coding: the encoding, from its coding line or UTF-8. "utf-8-sig" with a byte-order mark.
    """

    path: Path
    source: str
    coding: str

    def write(self, source: str) -> None:
        """Replaces the text. The encoding, the byte-order mark and the line ends stay."""
        self.path.write_bytes(source.encode(self.coding))


def read_file(path: Path) -> PythonFile:
    """Reads a file as Python does, but keeps its line ends.

    Args:
        path: the file.

    Raises:
        UnreadableError: the file does not match its encoding, names an unknown encoding, or cannot be opened.
    """
    coding = "utf-8"
    try:
        content = path.read_bytes()
        coding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        source = content.decode(coding)
        if _is_too_deep(source):
            raise UnreadableError(TOO_DEEP)
        return PythonFile(path=path, source=source, coding=coding)
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UnreadableError(f"line {line}: it is not {coding.upper()}. {_CODING}") from None
    except (SyntaxError, LookupError) as error:  # the encoding is unknown, or not an encoding of text
        raise UnreadableError(f"{error}. {_CODING}") from None


def python_files(named: Iterable[str]) -> list[Path]:
    """Returns named files, and all `.py` files below named directories except installed packages and hidden folders.

    Raises:
        ArgumentError: a file does not exist, a directory has no `.py` file, or a file is not Python by its name.
        OSError: a directory cannot be listed.
    """
    found: list[Path] = []
    for name in named:
        path = Path(name)
        if not path.exists():
            raise ArgumentError(f"There is no file {name}.")
        files = sorted(_below(path)) if path.is_dir() else [path]
        if not files:
            raise ArgumentError(f"The directory {name} holds no .py file.")
        if path.is_file() and path.suffix.lower() == ".ipynb":
            raise ArgumentError(
                f"{name} is a notebook, but only Python files are read. `jupyter nbconvert --to script {name}` writes "
                "its code into one."
            )
        if path.is_file() and path.suffix.lower() not in _ENDINGS:
            raise ArgumentError(
                f"{name} does not have the name of a Python file. Give files that end in .py, or their directory."
            )
        found += files
    return found


def _below(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise error

    for root, names, files in os.walk(folder, onerror=refuse):
        names[:] = [name for name in names if not _is_installed(Path(root, name))]
        yield from (Path(root, name) for name in files if name.endswith(".py"))


def _is_installed(folder: Path) -> bool:
    """Returns whether a folder is hidden, or holds packages of an environment."""
    return folder.name.startswith(".") or folder.name == "site-packages" or (folder / "pyvenv.cfg").exists()


def _is_too_deep(source: str) -> bool:
    """Returns whether brackets are nested deeper than Python itself allows."""
    depth = 0
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
            if depth > _DEEPEST:
                return True
    return False
