"""The code of a program: hashes of its own modules, and the commit they belong to."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from estimator_core.summaries import without_secrets

_MOST_DIFF = 1 << 20


def program_code(path: Path, folders: Sequence[Path]) -> dict[str, Any]:
    """The code outside of packages: every loaded module by its path, and the state of git.

    Args:
        path: the path of the program; paths are relative to its folder where they lie in it.
        folders: those of packages, whose code is not the program's.
    """
    home = path.resolve().parent
    files = {_relative(file, home): _digest(file) for file in sorted({*_own_modules(folders), *_itself(path)})}
    return {"files": files, "git": _git(home)}


def _itself(path: Path) -> list[Path]:
    """A program in Python; the values of a configuration file are compared one by one."""
    return [path.resolve()] if path.suffix == ".py" else []


def _own_modules(folders: Sequence[Path]) -> list[Path]:
    places = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    places += folders
    files = (getattr(module, "__file__", None) for name, module in sys.modules.copy().items() if name != "__main__")
    found = {Path(file).resolve() for file in files if file and file.endswith(".py")}
    return [file for file in found if not any(file.is_relative_to(place) for place in places) and file.is_file()]


def _relative(file: Path, home: Path) -> str:
    return file.relative_to(home).as_posix() if file.is_relative_to(home) else str(file)


def _digest(file: Path) -> str:
    return f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"


def _git(folder: Path) -> dict[str, Any]:
    """Commit and diff of the folder's repository; empty where there is none."""
    if shutil.which("git") is None:
        return {}

    def asked(*words: str) -> str | None:
        told = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, errors="replace", timeout=20
        )
        return told.stdout if told.returncode == 0 else None

    commit = asked("rev-parse", "HEAD")
    if commit is None:
        return {}
    diff = asked("diff", "HEAD", "--no-color", "--no-ext-diff") or ""
    kept = "\n".join(map(_masked, diff[:_MOST_DIFF].split("\n")))
    return {"commit": commit.strip(), "diff": kept, **({} if kept == diff else {"diff_changed": True})}


def _masked(line: str) -> str:
    """A line of a diff without the values of secrets.

    Example:
        >>> _masked("+api_key = 'abc'"), _masked("+rate = 0.1")
        ('+api_key =***', '+rate = 0.1')
    """
    before, equals, _ = line.partition("=")
    hidden = equals and "***" in without_secrets([f"{before.lstrip('+- ').strip()}=value"])[0]
    return f"{before}=***" if hidden else without_secrets([line])[0]
