"""Tests of commands as components: the suite catches faults, and `estimator` finds the package of `new-plugin`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from estimator_core.cli import command_names, main
from estimator_core.errors import ArgumentError
from estimator_terminal.command_suite import CommandSuite
from estimator_testing.cli.scaffold import write_package


class Count:
    """Count the files of a folder."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", help="the folder")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: argparse.Namespace) -> int:
        if not os.path.isdir(args.folder):
            raise ArgumentError(f"There is no folder {args.folder}.")
        print(len(os.listdir(args.folder)))
        return 0


class TestCount(CommandSuite):
    def make(self) -> Any:
        return Count()

    def good_words(self, folder: Path) -> list[list[str]]:
        return [[str(folder)]]

    def bad_words(self, folder: Path) -> list[list[str]]:
        return [[], [str(folder / "missing")]]


class WithoutWords(Count):
    __doc__ = None


class WithoutHelp(Count):
    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder")


class ReturnsNothing(Count):
    def run(self, args: argparse.Namespace) -> Any:
        super().run(args)


class CountsCalls(Count):
    calls = 0

    def run(self, args: argparse.Namespace) -> int:
        CountsCalls.calls += 1
        print(self.calls)
        return super().run(args)


class WithAHeading(Count):
    def run(self, args: argparse.Namespace) -> int:
        print("files:")
        return super().run(args)


class TakesAnything(Count):
    def run(self, args: argparse.Namespace) -> int:
        print(0)
        return 0


class LeavesALog(Count):
    def run(self, args: argparse.Namespace) -> int:
        Path("log.txt").touch()
        return super().run(args)


class Moves(Count):
    def run(self, args: argparse.Namespace) -> int:
        sys.path.append(args.folder)
        return super().run(args)


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (object, "test_is_a_command"),
        (WithoutWords, "test_is_a_command"),
        (WithoutHelp, "test_explains_each_argument"),
        (ReturnsNothing, "test_good_words_succeed"),
        (CountsCalls, "test_good_words_succeed"),
        (WithAHeading, "test_json_is_json"),
        (TakesAnything, "test_bad_words_are_refused"),
        (LeavesALog, "test_bad_words_are_refused"),
        (Moves, "test_leaves_the_process_as_it_was"),
    ],
)
def test_the_suite_catches(broken: type, test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = TestCount()
    suite.make = broken
    monkeypatch.setattr(sys, "path", [*sys.path])
    arguments = {"tmp_path": tmp_path, "monkeypatch": monkeypatch}
    names = getattr(TestCount, test).__code__.co_varnames[1 : getattr(TestCount, test).__code__.co_argcount]
    with pytest.raises((AssertionError, ValueError)):
        getattr(suite, test)(**{name: arguments[name] for name in names})


def test_a_heavy_file_is_caught() -> None:
    class OfNumbers(TestCount):
        def make(self) -> Any:
            return type("Heavy", (Count,), {"__module__": "numpy.random"})()

    with pytest.raises(AssertionError, match=r"importing numpy.random imports .*numpy"):
        OfNumbers().test_importing_it_is_light()


def test_the_package_of_new_plugin_is_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_package("acme-sizes", "command", tmp_path)
    source = tmp_path / "acme-sizes" / "src"
    (metadata := source / "acme_sizes-0.1.0.dist-info").mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-sizes\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text("[estimator.plugins]\nacme_sizes = acme_sizes.plugin\n")
    monkeypatch.syspath_prepend(str(source))
    assert command_names()["acme-sizes"].endswith("(acme-sizes 0.1.0)")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "file").write_bytes(bytes(2000))
    assert main(["acme-sizes", str(tmp_path / "one")]) == 0
    assert capsys.readouterr().out.split() == ["2,000", "file"]
    assert main(["acme-sizes", str(tmp_path / "missing")]) == 2
    with pytest.raises(SystemExit, match="2"):
        main(["acme-sizes", str(tmp_path / "one"), "--most", "few"])
    assert "estimator acme-sizes: error: There is no folder" in capsys.readouterr().err
