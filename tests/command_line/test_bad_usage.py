"""Tests of bad arguments: the exit status is 2, one line states the reason, nothing is written, and no traceback is
shown.
"""

from pathlib import Path

import pytest

from estimator_core.cli import command_names, main
from tests.command_line.bad_words import CASES, FILES

pytestmark = pytest.mark.plugins


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("usage")
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


def written(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def ended(words: list[str]) -> object:
    try:
        return main(words)
    except SystemExit as stop:
        return stop.code


@pytest.mark.parametrize(("words", "message"), CASES, ids=[words for words, _ in CASES])
def test_it_is_refused_in_one_line(
    words: str, message: str, directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(directory)
    before = written(directory)
    code = ended(words.format(dir=directory).split())
    output = capsys.readouterr()
    first, *more = output.err.splitlines() or [""]
    assert (code, message in output.err) == (2, True), output
    assert first.startswith("estimator")
    assert "error: " in first
    assert all(line.startswith("  ") for line in more), output.err  # the available values
    assert len(more) <= 4
    assert "Traceback" not in output.err
    assert written(directory) == before


def test_there_are_enough_cases_and_some_of_every_command() -> None:
    assert len({words for words, _ in CASES}) == len(CASES) >= 200
    reached_otherwise = {"lock", "policy", "plugin-doctor"}  # as `estimator plugins lock`, and so on
    tried = {words.split()[0] for words, _ in CASES}
    assert sorted({name.rpartition(":")[2] for name in command_names()} - reached_otherwise - tried) == []
