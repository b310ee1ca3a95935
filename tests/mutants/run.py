"""Applies the mutants one by one to copies of the packages, and runs the tests of their guarantees.

`python -m tests.mutants.run [--only NAME_OR_ROOM ...] [--cut N] [--list]`. Every mutant must be killed: a test fails
with it that passes without it. A survivor is an error, and so is a mutant that no longer fits the sources.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.guarantees import tests_beside
from tests.mutants.preloaded import PROFILE
from tests.mutants.record import Mutant, StaleMutantError, all_mutants, own_tests, spread

ROOT = Path(__file__).parents[2]
WORKERS = min(2, os.cpu_count() or 1)
#: The seconds after which a test counts as hanging. Some mutants make tests hang, and that kills the mutant.
TEST_SECS, PYTEST_SECS = 120, 400
_COPIED = ("pyproject.toml", "docs", "estimator_core", "examples", "plugins", "tests")
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.md", "separate", "frozen_1_0.whl")
_PYTEST = (
    "-x",
    "-q",
    "-rfE",
    "--no-header",
    "--tb=line",
    f"--timeout={TEST_SECS}",
    "-pno:cacheprovider",
    f"--hypothesis-profile={PROFILE}",
    "-Wignore::pytest.PytestAssertRewriteWarning",  # its plugins have been imported already
)
#: Errors that a mutant must not cause. They are a mistake of its author, and no test has detected a broken rule.
_MISTAKES = ("NameError", "ImportError", "ModuleNotFoundError", "SyntaxError")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a mutant.

    Args:
        mutant: the mutant.
        status: "killed", "TIMED OUT" (a test hangs with it, which kills it too), "SURVIVED", "STALE" or "BROKEN" (it
            fails for another reason).
        seconds: the duration of its tests.
        why: the first failure, or the fault of the mutant itself.
    """

    mutant: Mutant
    status: str
    seconds: float
    why: str


class Copy:
    """A copy of the packages and their tests in a separate folder, which the tests import.

    Args:
        root: the root of the repository.
        folder: an empty folder for the copy.
        added: a folder whose files are added to the copy, or None.
    """

    def __init__(self, root: Path, folder: Path, added: Path | None = None) -> None:
        self._folder = folder
        for name in _COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=_NOT_COPIED, symlinks=True)
            elif source.exists():
                shutil.copy2(source, folder / name)
        if added is not None:
            shutil.copytree(added, folder, dirs_exist_ok=True)
        sources = [folder, *sorted(folder.glob("plugins/*/src"))]
        self.packages = sorted(
            path.parent.name
            for source in sources
            for path in source.glob("*/__init__.py")
            if path.parent.name != "tests"
        )
        (temporary := folder / "temporary").mkdir()
        self._env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, sources)),  # before installed packages, for child processes too
            "JAX_PLATFORMS": "cpu",
            "KERAS_BACKEND": "jax",
            # Without its own folder, the cleanup of another pytest on this machine would look like a failing test.
            "PYTEST_DEBUG_TEMPROOT": str(temporary),
        }
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.preloaded"],
            cwd=folder,
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._answer() == "ready"

    def close(self) -> None:
        """Ends the process that runs the tests."""
        self._server.communicate()

    def check_imported(self) -> None:
        """Makes sure that a process started here imports only the copy.

        Raises:
            AssertionError: a package comes from another place.
        """
        program = "import importlib, sys\nfor name in sys.argv[1:]: print(importlib.import_module(name).__file__)"
        command = [sys.executable, "-c", program, *self.packages]
        done = subprocess.run(command, cwd=self._folder, env=self._env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        strange = [path for path in done.stdout.split() if not Path(path).is_relative_to(self._folder)]
        assert not strange, f"imported from elsewhere: {strange}"

    def pytest(self, tests: Sequence[str], seconds: int = PYTEST_SECS) -> tuple[int, str]:
        """Returns the exit status, which is negative for a signal, and the output.

        A process that takes longer is killed.
        """
        output = self._folder / "output.txt"
        request = {"arguments": [*_PYTEST, *tests], "output": str(output), "seconds": seconds}
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        status = int(self._answer())
        return status, output.read_text(encoding="utf-8", errors="replace")

    def _answer(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()

    def run(self, mutant: Mutant, tests: Sequence[str]) -> Outcome:
        """Applies one mutant, runs its tests, and restores the source."""
        path = self._folder / mutant.file
        begun = time.monotonic()
        source = path.read_text(encoding="utf-8")
        try:
            _write(path, mutant.mutated(source))
            status, output = self.pytest(tests)
        finally:
            _write(path, source)
        verdict, why = judged(status, output)
        return Outcome(mutant=mutant, status=verdict, seconds=time.monotonic() - begun, why=why)


def _write(path: Path, source: str) -> None:
    """Writes a source, and deletes its bytecode, because two sources may have the same length and second."""
    path.write_text(source, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def judged(status: int, output: str) -> tuple[str, str]:
    """Returns the status of a mutant for an exit status of pytest, and the line that explains it."""
    if status == 0:
        return "SURVIVED", "all tests pass"
    if status < 0:
        return "TIMED OUT" if -status == signal.SIGKILL else "killed", f"the process ended by signal {-status}"
    found = re.search(r"^(?:FAILED|ERROR) (.*)$", output, re.MULTILINE)
    why = found[1] if found else output.strip()[-300:]
    error = why.partition(" - ")[2]
    if found and not error:  # pytest omits the error after a long name; `--tb=line` prints it on its own line
        error = next(iter(re.findall(r"^(?:E  +|/.*:\d+: )(.*)$", output, re.MULTILINE)), "")
        why += f" - {error}"
    if status != 1 or error.startswith(_MISTAKES):
        return "BROKEN", why
    return "TIMED OUT" if "Timeout (>" in why else "killed", why


def run_all(
    root: Path,
    chosen: Sequence[Mutant],
    beside: Mapping[str, Sequence[str]],
    added: Path | None = None,
) -> list[Outcome]:
    """Returns the outcome of each mutant, in the same order.

    Args:
        root: the root of the repository.
        chosen: the mutants.
        beside: `file::test` of the tests of each guarantee.
        added: a folder whose files are added to the copies of the repository.

    Raises:
        SystemExit: a test fails without any mutant.
    """
    outcomes: dict[str, Outcome] = {}
    tests: dict[str, tuple[str, ...]] = {}
    for mutant in chosen:
        try:
            sources = [place / mutant.file for place in (root, added) if place is not None]
            mutant.mutated(next((path.read_text(encoding="utf-8") for path in sources if path.is_file()), ""))
            tests[mutant.name] = own_tests(mutant, beside.get(mutant.guarantee, ()))
        except StaleMutantError as error:
            outcomes[mutant.name] = Outcome(mutant=mutant, status="STALE", seconds=0.0, why=str(error))
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        contextlib.ExitStack() as cleanup,
        ThreadPoolExecutor(WORKERS) as pool,
    ):
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for number in range(WORKERS):
            (place := Path(folder, str(number)).resolve()).mkdir()
            copies.put(copy := Copy(root, place, added))
            cleanup.callback(copy.close)
        names = sorted({test for of_mutant in tests.values() for test in of_mutant})
        _check_without_mutants(copies, pool, names)

        def one(mutant: Mutant) -> Outcome:
            copy = copies.get()
            try:
                outcome = copy.run(mutant, tests[mutant.name])
            finally:
                copies.put(copy)
            print(f"{outcome.status:9} {outcome.seconds:6.1f} s  {mutant.name}: {outcome.why[:120]}", flush=True)
            return outcome

        for outcome in pool.map(one, [mutant for mutant in chosen if mutant.name in tests]):
            outcomes[outcome.mutant.name] = outcome
    return [outcomes[mutant.name] for mutant in chosen]


def _check_without_mutants(copies: queue.SimpleQueue[Copy], pool: ThreadPoolExecutor, tests: Sequence[str]) -> None:
    """Runs each test once with the unchanged sources."""

    def part(number: int) -> tuple[int, str]:
        copy = copies.get()
        try:
            copy.check_imported()
            own = tests[number::WORKERS]
            return copy.pytest(own, TEST_SECS * len(own)) if own else (0, "")  # each test has its own limit
        finally:
            copies.put(copy)

    for status, output in pool.map(part, range(WORKERS)):
        if status:
            raise SystemExit(f"Tests fail without any mutant (exit status {status}):\n{output[-5000:]}")


def report(
    rooms: Mapping[str, Sequence[Mutant]], outcomes: Sequence[Outcome], seconds: float, *, may_time_out: bool = True
) -> int:
    """Prints the table, and returns the exit status."""
    room_of = {mutant.name: room for room, mutants in rooms.items() for mutant in mutants}
    for outcome in outcomes:
        mutant = outcome.mutant
        print(f"{outcome.status:9} {room_of[mutant.name]:16} {mutant.guarantee:9} {mutant.name}: {outcome.why[:160]}")
    good = ("killed", "TIMED OUT") if may_time_out else ("killed",)
    bad = [outcome for outcome in outcomes if outcome.status not in good]
    print(f"\n{len(outcomes)} mutants, {len(outcomes) - len(bad)} killed, {len(bad)} not, {seconds:.0f} s")
    for outcome in bad:
        print(f"{outcome.status}: {outcome.mutant.name} ({outcome.mutant.file}): {outcome.why}")
    return 1 if bad else 0


def chosen_by(rooms: Mapping[str, Sequence[Mutant]], only: Sequence[str], cut: int | None) -> list[Mutant]:
    """Returns the mutants that the arguments select.

    Raises:
        SystemExit: a name is neither a mutant nor a room.
    """
    known = {mutant.name for mutants in rooms.values() for mutant in mutants} | set(rooms)
    if unknown := [name for name in only if name not in known]:
        raise SystemExit(f"There is no mutant and no room {', '.join(unknown)}. Rooms: {', '.join(rooms)}.")
    chosen = [
        mutant
        for room, mutants in rooms.items()
        for mutant in mutants
        if not only or room in only or mutant.name in only
    ]
    return chosen if cut is None else spread([mutant for mutant in chosen if mutant.in_cut], cut)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description="Break each rule once, and see whether a test notices.")
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="mutants or rooms")
    parser.add_argument("--cut", type=int, help="at most so many, evenly spaced")
    parser.add_argument("--list", action="store_true", help="only list them")
    given = parser.parse_args(arguments)
    rooms = all_mutants()
    chosen = chosen_by(rooms, given.only, given.cut)
    if given.list:
        for mutant in chosen:
            print(f"{mutant.guarantee:9} {mutant.name:50} {mutant.file}")
        return 0
    begun = time.monotonic()
    page = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    outcomes = run_all(ROOT, chosen, tests_beside(page))
    return report(rooms, outcomes, time.monotonic() - begun, may_time_out=given.cut is None)


if __name__ == "__main__":
    sys.exit(main())
