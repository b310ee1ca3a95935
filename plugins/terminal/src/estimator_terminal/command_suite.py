"""The suite for commands."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from estimator_core.errors import ArgumentError, ArgumentTypeError, EstimatorError
from estimator_core.testing import Suite
from estimator_terminal.command import CommandLine

_WRONG_USAGE = 2
_IMPORT = "import importlib, sys; importlib.import_module({module!r}); print(*sys.modules)"
_HEAVY = frozenset({"jax", "numpy", "optax", "orbax", "tensorflow", "keras", "pandas", "torch"})


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The end of a command.

    Attributes:
        status: the exit status.
        output: the text that it printed.
        error: the message of its error, or empty without an error.
        changed: the changes of the process by the command. They were undone.
    """

    status: int
    output: str
    error: str
    changed: tuple[str, ...] = ()


class CommandSuite(Suite):
    """Proves that a command explains itself, works, and refuses wrong arguments in one line.

    Example:
        >>> class TestGreet(CommandSuite):
        ...     def make(self):
        ...         return Greet()
        ...
        ...     def good_words(self, folder):
        ...         return [["you"]]
        ...
        ...     def bad_words(self, folder):
        ...         return [[]]
    """

    #: False for a command that may print a different text the second time.
    repeats_itself: ClassVar[bool] = True

    def make(self) -> CommandLine:
        """Returns the command. It is called several times."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def good_words(self, folder: Path) -> Sequence[Sequence[str]]:
        """Returns lists of arguments with which the command succeeds. It may write files into the new folder."""
        raise NotImplementedError(f"{type(self).__name__} must define good_words(self, folder)")

    def bad_words(self, folder: Path) -> Sequence[Sequence[str]]:
        """Returns lists of arguments that the command refuses, in an empty folder."""
        raise NotImplementedError(f"{type(self).__name__} must define bad_words(self, folder)")

    def test_is_a_command(self) -> None:
        """It has the methods of CommandLine, and a docstring, which is the text of --help."""
        command = self.make()
        assert isinstance(command, CommandLine), f"{command!r} lacks a method of CommandLine"
        assert (command.__doc__ or "").strip(), f"{command!r} has no docstring; it is the text of --help"

    def test_importing_it_is_light(self) -> None:
        """Its import imports no numerical library, because completion and --help read the arguments of all commands."""
        module = type(self.make()).__module__
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        program = [sys.executable, "-c", _IMPORT.format(module=module)]
        done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert not (heavy := _HEAVY & set(done.stdout.split())), (
            f"importing {module} imports {', '.join(sorted(heavy))}"
        )

    def test_explains_each_argument(self) -> None:
        """Each argument has a line of help."""
        for action in _actions(self._parser()):
            assert (action.help or "").strip(), f"{action.dest} has no help"

    def test_good_words_succeed(self, tmp_path: Path) -> None:
        """With good arguments it returns 0, an int, and prints text. A second call and a new object print the same."""
        for words in self.good_words(_new(tmp_path / "good")):
            first = self._ended(words)
            assert (type(first.status), first.status) == (int, 0), f"{words}: {first}"
            assert first.output.strip(), f"{words}: it prints nothing"
        if self.repeats_itself:
            again = self.good_words(_new(tmp_path / "again"))
            first, second = ([self._ended(words).output for words in again] for _ in range(2))
            assert first == second, "the second time it prints something else"

    def test_json_is_json(self, tmp_path: Path) -> None:
        """If it accepts --json, its output with --json is one JSON value."""
        if not any("--json" in action.option_strings for action in _actions(self._parser())):
            pytest.skip("it does not take --json")
        for words in self.good_words(_new(tmp_path / "json")):
            ended = self._ended([*words, "--json"])
            assert ended.status == 0, f"{words}: {ended}"
            json.loads(ended.output)

    def test_bad_words_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """With bad arguments it ends with status 2 and a message that names the fault. Nothing is written."""
        monkeypatch.chdir(_new(tmp_path / "bad"))
        for words in self.bad_words(Path.cwd()):
            ended = self._ended(words)
            assert ended.status == _WRONG_USAGE, f"{words}: status {ended.status} instead of 2; {ended.error}"
            assert ended.error.strip(), f"{words}: it does not say what is wrong"
            assert not ended.output.strip(), f"{words}: it prints results before it refuses"
        assert list(Path.cwd().iterdir()) == [], "it has written files"

    def test_leaves_the_process_as_it_was(self, tmp_path: Path) -> None:
        """It does not change the working directory, the environment or the import path, as a program may call it."""
        for words in self.good_words(_new(tmp_path / "process")):
            ended = self._ended(words)
            assert not ended.changed, f"{words}: it changes {', '.join(ended.changed)}"

    def _parser(self) -> argparse.ArgumentParser:
        command = self.make()
        parser = argparse.ArgumentParser(prog="estimator command", description=command.__doc__)
        command.configure(parser)
        return parser

    def _ended(self, words: Sequence[str]) -> Ended:
        command, output, errors = self.make(), io.StringIO(), io.StringIO()
        parser = argparse.ArgumentParser(prog="estimator command")
        command.configure(parser)
        before = _process()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                status = command.run(parser.parse_args(list(words)))
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
            except EstimatorError as error:
                status = _WRONG_USAGE if isinstance(error, ArgumentError | ArgumentTypeError) else 1
                print(error, file=errors)
        changed = _put_back(before)
        return Ended(status=status, output=output.getvalue(), error=errors.getvalue(), changed=changed)


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Returns the arguments of a parser. Those of sub-commands are read where they are chosen."""
    return [action for action in parser._actions if action.dest != "help"]  # pyright: ignore[reportPrivateUsage] # noqa: SLF001


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _process() -> dict[str, Any]:
    """Returns the state that a command may not change, by name."""
    return {
        "the working directory": os.getcwd(),
        "the environment": dict(os.environ),
        "sys.path": list(sys.path),
    }


def _put_back(before: Mapping[str, Any]) -> tuple[str, ...]:
    """Undoes changes, and returns their names. A change that remains would not be noticed in the next test."""
    changed = tuple(what for what, now in _process().items() if now != before[what])
    os.chdir(before["the working directory"])
    for name in set(os.environ) - set(before["the environment"]):
        del os.environ[name]
    os.environ.update(before["the environment"])
    sys.path[:] = before["sys.path"]
    return changed
