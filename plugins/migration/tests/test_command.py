"""`estimator migrate check` and `rewrite` as a user calls them."""

import json
from pathlib import Path

import pytest

from estimator_core.cli import main

PROGRAM = 'import tensorflow as tf\nconfig = tf.estimator.RunConfig("runs")\n'


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_check_prints_a_line_a_use_and_ends_with_3(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "check", str(program)]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(f"{program}:2:10: tf.estimator.RunConfig -> ec.RunConfig [behaves differently] ")
    assert lines[-1] == "1 file: 1 behaves differently, 1 rewrite by hand."


def test_check_of_a_finished_program_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "done.py").write_text("import estimator_core as ec\n")
    assert main(["migrate", "check", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "1 file: no name of TensorFlow.\n"


def test_check_as_json(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "check", "--json", str(program)]) == 3
    (read,) = json.loads(capsys.readouterr().out)
    assert [(use["line"], use["name"], use["home"]) for use in read["uses"]] == [
        (1, "tf", "ec"),
        (2, "tf.estimator.RunConfig", "ec.RunConfig"),
    ]


def test_check_as_html(program: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["migrate", "check", str(program), "--html", str(page)]) == 3
    assert "<code>ec.RunConfig</code>" in page.read_text()
    assert "&quot;runs&quot;" in page.read_text()


def test_a_file_that_is_no_python_is_said_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "old.py").write_text("print 'of Python 2'\n")
    assert main(["migrate", "check", str(tmp_path)]) == 3
    assert "old.py: cannot be read: line 1: it is not Python 3" in capsys.readouterr().out


def test_rewrite_prints_a_diff_and_writes_nothing(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "rewrite", str(program)]) == 0
    assert '+config = ec.RunConfig("runs")' in capsys.readouterr().out
    assert program.read_text() == PROGRAM


def test_rewrite_writes_where_asked(program: Path) -> None:
    assert main(["migrate", "rewrite", "--write", str(program)]) == 0
    assert program.read_text().startswith("import estimator_core as ec\n")
    assert main(["migrate", "check", str(program)]) == 0


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "check", "no/such.py"]) != 0
    assert "There is no file no/such.py." in capsys.readouterr().err
