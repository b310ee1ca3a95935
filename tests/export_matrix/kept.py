"""Stores finished rows of the matrix, so that a call continues where the last one ended.

`python -m tests.export_matrix.kept FOLDER [--cut]` prints a folder in FOLDER and removes all others. The name of the
folder depends on everything that decides a row: the files of our packages, the versions of all others, and the programs
of the matrix.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.metadata
import platform
import shutil
from collections.abc import Generator
from pathlib import Path

HERE = Path(__file__).parent
#: Programs that only show the results of the others.
SHOWING = ("page.py",)


def key_of(sources: Path, distributions: list[importlib.metadata.Distribution]) -> str:
    """Returns a name that differs if a row may differ.

    Args:
        sources: the programs of the matrix.
        distributions: the installed distributions. Each file of ours counts, and only the version of others.
    """
    facts = [platform.python_version(), platform.machine()]
    facts += [f"{path.name} {_sum(path)}" for path in sorted(sources.glob("*.py")) if path.name not in SHOWING]
    for one in sorted(distributions, key=lambda one: one.name):
        facts.append(f"{one.name} {one.version}")
        if one.name.replace("_", "-").startswith("estimator-"):
            files = sorted(map(str, one.files or ()))
            facts += [f"{name} {_sum(Path(str(one.locate_file(name))))}" for name in files if name.endswith(".py")]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


@contextlib.contextmanager
def claimed(folder: Path) -> Generator[bool]:
    """Yields whether this process alone works on a folder. The claim of a killed process is free at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "absent"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cut", action="store_true")
    arguments = parser.parse_args()
    key = key_of(HERE, list(importlib.metadata.distributions()))
    names = {f"{key}-cut" if cut else key: cut for cut in (False, True)}
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for path in arguments.folder.iterdir():
        if path.name not in names:
            shutil.rmtree(path)
    print(next(arguments.folder / name for name, cut in names.items() if cut == arguments.cut))


if __name__ == "__main__":
    main()
