"""Tests of the options of every command: they stand before or after it, and apply only while it runs."""

import argparse
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from estimator_core import errors, journal, storage
from estimator_core._cli.run_module import run_module
from estimator_core.cli import command_names, command_parser, main
from estimator_core.errors import ArgumentError

ERRORS = Path(__file__).parents[2] / "docs" / "errors.md"


@pytest.fixture(autouse=True)
def _levels() -> Iterator[None]:
    log = logging.getLogger("estimator_core")
    level = log.level
    yield
    log.setLevel(level)


class Seen(SimpleNamespace):
    """A command that records the environment it runs in."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--plugins", type=int, default=7)  # its own option replaces the common one
        parser.add_argument("--level", type=int)

    def run(self, args: argparse.Namespace) -> int:
        self.args = args
        self.level = logging.getLevelName(logging.getLogger("estimator_core").level)
        self.variables = {
            name: os.environ.get(name) for name in ("NO_COLOR", "ESTIMATOR_QUIET", "ESTIMATOR_PLUGINS_BLOCK")
        }
        return 3


@pytest.mark.parametrize(
    ("words", "level", "quiet"),
    [
        (["--log-level", "error"], "ERROR", "1"),
        (["--quiet"], "WARNING", "1"),
        (["-q"], "WARNING", "1"),
        (["-v"], "DEBUG", ""),
        (["-q", "--verbose"], "DEBUG", ""),
    ],
)
def test_levels_after_the_command(words: list[str], level: str, quiet: str) -> None:
    command = Seen()
    assert run_module(command, "estimator seen", words) == 3
    assert (command.level, command.variables["ESTIMATOR_QUIET"]) == (level, quiet)


def test_the_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATOR_PLUGINS_BLOCK", "acme")
    monkeypatch.delenv("NO_COLOR", raising=False)
    command = Seen()
    run_module(command, "estimator seen", ["--no-color", "--block-plugin", "other"])
    assert command.variables["NO_COLOR"] == "1"
    assert command.variables["ESTIMATOR_PLUGINS_BLOCK"] == "acme,other"
    assert "NO_COLOR" not in os.environ
    assert os.environ["ESTIMATOR_PLUGINS_BLOCK"] == "acme"


def test_an_option_of_the_command_itself_wins() -> None:
    command = Seen()
    run_module(command, "estimator seen", ["--plugins", "5"])
    assert command.args.plugins == 5
    assert command.variables["ESTIMATOR_PLUGINS_BLOCK"] == os.environ.get("ESTIMATOR_PLUGINS_BLOCK")


@pytest.mark.parametrize("words", [["--json", "plugins", "--kind", "hook"], ["plugins", "--kind", "hook", "--json"]])
def test_json_before_and_after(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("[")


@pytest.mark.parametrize("words", [["--debug", "plugins", "--kind", "x"], ["plugins", "--kind", "x", "--debug"]])
def test_debug_shows_the_traceback(words: list[str]) -> None:
    with pytest.raises(ArgumentError, match="no kind of component 'x'"):
        main(words)


@pytest.mark.parametrize("words", [["--no-plugins", "plugins"], ["plugins", "--no-plugins"]])
def test_plugin_switches_before_and_after(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert " loaded " not in capsys.readouterr().out


def test_words_of_a_program_of_the_user_are_left_alone() -> None:
    parser = argparse.Namespace(**vars(command_parser("plugins").parse_args(["doctor", "--debug", "acme"])))
    assert parser.words == ["--debug", "acme"]
    assert "every_debug" not in vars(parser)


def test_each_command_has_a_parser_that_refuses_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("", *command_names()):
        with pytest.raises(SystemExit) as ended:
            command_parser(name).error("words")
        assert ended.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("words", [["--plugin-option", "x", "plugins"], ["plugins", "--plugin-option", "x"]])
def test_a_wrong_switch_is_refused_wherever_it_stands(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(words)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert "write PLUGIN.NAME=VALUE" in capsys.readouterr().err


def test_what_is_found_and_what_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "explain", "hook", "logging_tensor"]) == 0
    assert main(["plugins", "explain", "hook", "nope"]) == 1
    assert main(["plugins", "explain", "hok", "nope"]) == 2
    assert "there is no hook 'nope'" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "found"), [("logging_tensor", True), ("nope", False)])
@pytest.mark.parametrize("words", ["--json plugins explain", "plugins --json explain", "plugins explain --json"])
def test_what_is_found_as_json(words: str, name: str, found: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words.split(), "hook", name]) == 1 - found
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["name"], told["found"]) == ("hook", name, found)
    assert told["text"].startswith("hook 'logging_tensor' of" if found else "there is no hook 'nope'.")


def test_a_wrong_argument_is_another_code_than_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuses(args: argparse.Namespace) -> int:
        raise ArgumentError("words")

    monkeypatch.setattr("estimator_core._cli.plugins.run", refuses)
    assert main(["plugins"]) == 2
    assert capsys.readouterr().err == "estimator plugins: error: words\n"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        *((errors, name) for name in errors.__all__ if isinstance(getattr(errors, name), type)),
        (storage, "StorageGoneError"),
        (journal, "JournalError"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_failure_names_the_heading_that_explains_it(
    module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if ERRORS.exists():  # not next to an installed core
        page = ERRORS.read_text()
        assert f"\n### {name}\n" in page or (module is storage and f"\n| `{name}` |" in page)
    of_a_plugin = type("Own", (getattr(module, name),), {})

    def fails(args: argparse.Namespace) -> int:
        raise of_a_plugin("words")

    monkeypatch.setattr("estimator_core._cli.plugins.run", fails)
    code = main(["plugins"])
    told = {1: f"error: words [{name}]", 2: "error: words", 75: "words"}[code]
    assert capsys.readouterr().err == f"estimator plugins: {told}\n"
    of_the_words = ("ArgumentError", "ArgumentTypeError", "PluginLookupError")
    assert code == (2 if name in of_the_words else 75 if name == "PreemptedError" else 1)


def test_no_parser_imports_jax() -> None:
    script = (
        "import sys; from estimator_core.cli import command_names, command_parser\n"
        "for name in command_names(): command_parser(name)\n"
        "print(*{'jax', 'pandas', 'rich', 'orbax', 'tensorflow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
