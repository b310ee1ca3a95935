"""The code of a program: the hashes of its own modules, and their commit."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from estimator_core.summaries import without_secrets

_MOST_DIFF, _MOST_SECONDS = 1 << 20, 20
_NAME = re.compile(r"\w[\w-]*")


def program_code(path: Path, folders: Sequence[Path]) -> dict[str, Any]:
    """Returns the code outside of packages: every loaded module by its path, and the state of git.

    Args:
        path: the path of the program. The paths of modules in its folder are relative to the folder.
        folders: the folders of packages, whose code does not belong to the program.
    """
    home = path.resolve().parent
    files = {_relative(file, home): _digest(file) for file in sorted({*_own_modules(folders), *_itself(path)})}
    return {"files": files, "git": _git(home, list(files))}


def _itself(path: Path) -> list[Path]:
    """Returns the program if it is in Python. The values of a configuration file are compared one by one."""
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


def _git(folder: Path, files: Sequence[str]) -> dict[str, Any]:
    """Returns commit and diff of the repository of a folder, and its untracked files. Empty without a repository."""
    if shutil.which("git") is None:
        return {}

    def asked(*words: str) -> str | None:
        command = ["git", "--literal-pathspecs", "-C", str(folder), *words]
        try:
            told = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_MOST_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        return told.stdout if told.returncode == 0 else None

    commit, top = asked("rev-parse", "HEAD"), asked("rev-parse", "--show-toplevel")
    if commit is None or top is None:
        return {}
    diff = asked("diff", "HEAD", "--no-color", "--no-ext-diff")
    untracked = _untracked(asked, Path(top.removesuffix("\n")).resolve(), [folder / file for file in files])
    return {
        "commit": commit.strip(),
        **({"not_read": "git diff failed or took too long"} if diff is None else _kept(diff)),
        **({} if untracked is None else {"untracked": [_relative(file, folder) for file in untracked]}),
    }


def _untracked(asked: Callable[..., str | None], top: Path, files: Sequence[Path]) -> list[Path] | None:
    """Returns the files that neither a commit nor a diff of the repository contains; None: git does not answer."""
    within = [str(file) for file in files if file.is_relative_to(top)]
    listed = asked("ls-files", "-z", "--full-name", "--", *within) if within else ""
    if listed is None:
        return None
    tracked = {top / name for name in listed.split("\0") if name}
    return [file for file in files if file not in tracked]


def _kept(diff: str) -> dict[str, Any]:
    # A line that is cut may have lost the name of its secret.
    held = diff if len(diff) <= _MOST_DIFF else diff[:_MOST_DIFF].rpartition("\n")[0]
    kept = "\n".join(map(_masked, held.split("\n")))
    return {"diff": kept, **({} if kept == diff else {"diff_changed": True})}


def _masked(line: str) -> str:
    """Returns a line of a diff with its secrets masked. With a name of a secret, only its first character stays.

    Example:
        >>> [_masked(line) for line in ("+api_key: str = 'abc'", "-export WANDB_API_KEY=abc", "+rate = 0.1")]
        ['+***', '-***', '+rate = 0.1']
    """
    named = without_secrets([f"{name}=" for name in _NAME.findall(line)])
    return f"{line[:1]}***" if any(word.endswith("***") for word in named) else without_secrets([line])[0]
