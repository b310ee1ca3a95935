"""Tests of lost output, such as a closed pipe or a full disk: the command ends with status 1 and at most one line."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from estimator_core._cli import checkpoints
from estimator_core._cli.main import main

COMMAND = [sys.executable, "-m", "estimator_core._cli.main"]
NOTICED = pytest.mark.parametrize("buffered", [True, False], ids=["at the end", "at once"])
WORDS = pytest.mark.parametrize("words", [["--help"], ["--version"], ["plugins", "--kind", "backend"]], ids=" ".join)


def ended(words: list[str], output: int, *, buffered: bool) -> tuple[int, str]:
    """Returns the exit code and the output of a command."""
    environ = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1", "ESTIMATOR_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run([*COMMAND, *words], stdout=output, stderr=subprocess.PIPE, text=True, env=environ)
    return done.returncode, done.stderr


@NOTICED
@WORDS
def test_a_reader_that_went_away_leaves_no_traceback(words: list[str], buffered: bool) -> None:
    """An example is `estimator plugins | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert ended(words, writer, buffered=buffered) == (1, "")
    finally:
        os.close(writer)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full, a disk that is full, is of Linux")
@WORDS
def test_a_full_disk_is_told_in_one_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        told = "estimator: error: the output cannot be written: No space left on device\n"
        assert ended(words, full.fileno(), buffered=True) == (1, told)


BROKEN = """
import os, sys
from estimator_core._cli import checkpoints, main

def run(args):
    reader, writer = os.pipe()
    os.close(reader)
    os.write(writer, b"to a worker that has ended")

checkpoints.run = run
sys.exit(main.main(["checkpoints", "model"]))
"""


def test_a_broken_pipe_of_the_work_itself_is_told() -> None:
    """The pipe of a worker that has ended is an example: it is not the reader of the output."""
    done = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith("BrokenPipeError: [Errno 32] Broken pipe\n")
    assert "line 8, in run" in done.stderr


@pytest.mark.parametrize(
    ("number", "cure"),
    [
        (errno.ENOSPC, "Free some space, then start the same command again. [StorageFullError]"),
        (errno.EROFS, "Use a directory that can be written. [StorageDeniedError]"),
        (errno.EACCES, "Change its permissions, or use another path. [StorageDeniedError]"),
        (errno.ENAMETOOLONG, "Use a shorter path. [ArgumentError]"),
    ],
    ids=lambda one: errno.errorcode.get(one, ""),
)
def test_what_a_file_system_refuses_is_told_in_one_line(
    number: int, cure: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """This holds for any work of the command. --debug shows its traceback, and that of other errors is always shown."""

    def run(args: object) -> int:
        raise OSError(number, os.strerror(number), "scores.csv")

    monkeypatch.setattr(checkpoints, "run", run)
    assert main(["checkpoints", "model"]) == 1
    assert capsys.readouterr().err == f"estimator checkpoints: error: scores.csv: {os.strerror(number)}. {cure}\n"
    with pytest.raises(OSError, match="scores"):
        main(["--debug", "checkpoints", "model"])
    number = errno.EIO
    with pytest.raises(OSError, match="scores"):
        main(["checkpoints", "model"])


def test_a_port_that_is_refused_is_taken_for_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(args: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(checkpoints, "run", run)
    with pytest.raises(PermissionError):
        main(["checkpoints", "model"])


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.EACCES, "Permission denied", "new", None, "old"), "new -> old: Permission denied. Change its"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device (--debug shows where). Free some"),
        (OSError(errno.EROFS, "Read-only. Use another one", "run"), "run: Read-only. Use another one [StorageDenied"),
    ],
    ids=["two paths", "no path", "its own words"],
)
def test_what_a_file_system_refuses_is_told_with_all_that_is_known(
    error: OSError, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A note, such as that of the hook that raised the error, is the only trace of the place in a user's program."""
    error.add_note("in hook Mine from module prog, end, step 3")

    def run(args: object) -> int:
        raise error

    monkeypatch.setattr(checkpoints, "run", run)
    assert main(["checkpoints", "model"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"estimator checkpoints: error: {told}")
    assert second == "  in hook Mine from module prog, end, step 3"
