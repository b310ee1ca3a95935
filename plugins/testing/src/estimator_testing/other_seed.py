"""Compares the results of a test with its results in a process with another seed of string hashes.

One such process serves all tests of a session. It runs the tests that need it, and each of them records its results.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

_RECORD = "ESTIMATOR_TESTING_RECORD"
_WAIT_SECS = 300.0


def same_under_another_seed(request: pytest.FixtureRequest, found: Any) -> None:
    """Fails unless the running test has the same results in a process with another seed of hashes.

    Args:
        request: the `request` fixture of the running test.
        found: the results: JSON values and arrays.

    Raises:
        AssertionError: the results differ there, or the test fails there.
    """
    here, name = json.dumps(found, default=_plain), _name_of(request.node)
    if folder := os.environ.get(_RECORD):
        Path(folder, name).write_text(here)
        return
    record = _recorded(request) / name
    assert record.is_file(), f"in a process with other hashes it fails:\n{_output(record.parent)}"
    there = record.read_text()
    assert here == there, f"in a process with other hashes it is {there}, here {here}; does it use hash() or a set?"


def _recorded(request: pytest.FixtureRequest) -> Path:
    """Returns the folder with the records of the other process. The first worker of a session starts the process."""
    items = [item for item in request.session.items if _base_name(item) == _base_name(request.node)]
    tests = sorted({_id_of(item) for item in items} | {_id_of(request.node)})
    base: Path = request.getfixturevalue("tmp_path_factory").getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = base / f"other-seed-{hashlib.sha256(repr(tests).encode()).hexdigest()[:16]}"
    done = folder / "done"
    try:
        folder.mkdir()
    except FileExistsError:
        until = time.monotonic() + _WAIT_SECS
        while not done.exists() and time.monotonic() < until:
            time.sleep(0.05)
    else:
        (folder / "output.txt").write_text(_run(request.config, tests, folder))
        done.touch()
    return folder


def _run(config: pytest.Config, tests: Sequence[str], folder: Path) -> str:
    """Runs the tests with another seed of hashes, and returns their output."""
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")},
        "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        _RECORD: str(folder),
    }
    options = [f"--rootdir={config.rootpath}", f"--import-mode={config.getoption('importmode')}", "-q", "--tb=short"]
    options += [f"-c{config.inipath}"] if config.inipath is not None else []
    options += ["-pno:xdist", "-pno:cacheprovider", f"--basetemp={folder / 'tmp'}", "-oaddopts="]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        env=environment,
        cwd=config.invocation_params.dir,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def _output(folder: Path) -> str:
    path = folder / "output.txt"
    return path.read_text()[-3000:] if path.is_file() else "it did not end"


def _id_of(item: pytest.Item) -> str:
    return "::".join([str(item.path), *item.nodeid.split("::")[1:]])


def _name_of(item: pytest.Item) -> str:
    return hashlib.sha256(_id_of(item).encode()).hexdigest()[:16] + ".json"


def _base_name(item: Any) -> str:
    return getattr(item, "originalname", item.name)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else repr(value)
