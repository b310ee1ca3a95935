"""Tests of `estimator migrate check` and `rewrite`, called as a user calls them."""

import errno
import json
import os
from pathlib import Path
from typing import Any

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
    assert [(use["line"], use["column"], use["name"], use["home"]) for use in read["uses"]] == [
        (1, 8, "tf", "ec"),
        (2, 10, "tf.estimator.RunConfig", "ec.RunConfig"),
    ]


def test_check_as_html(program: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["migrate", "check", str(program), "--html", str(page)]) == 3
    assert "<code>ec.RunConfig</code>" in page.read_text()
    assert "&quot;runs&quot;" in page.read_text()


def test_check_names_what_comes_from_other_files_of_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        "import os",
        "import model",
        "from model import model_fn",
        "from .lib import nets",
        "import lib.losses as l",
    ]
    (tmp_path / "train.py").write_text("\n".join([*lines, "import estimator_core as ec", "ec.Estimator(model_fn)", ""]))
    (tmp_path / "model.py").write_text("import tensorflow as tf\n\n\ndef model_fn(): tf.zeros([3])\n")
    (tmp_path / "lib").mkdir()
    for name in ("nets", "losses"):
        (tmp_path / "lib" / f"{name}.py").write_text("x = 1\n")
    train = str(tmp_path / "train.py")
    assert main(["migrate", "check", train]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{train}:2: model, model_fn from {tmp_path}/model.py, which is not read: check that file, too.",
        f"{train}:4: nets from {tmp_path}/lib/nets.py, which is not read: check that file, too.",
        f"{train}:5: lib.losses from {tmp_path}/lib/losses.py, which is not read: check that file, too.",
        "1 file: no name of TensorFlow.",
    ]
    main(["migrate", "check", "--json", train, str(tmp_path / "lib")])
    (read, *_) = [each for each in json.loads(capsys.readouterr().out) if each["imports"]]
    expected = {"line": 2, "read": False, "names": ["model", "model_fn"], "of_tensorflow": []}
    assert read["imports"] == [{**expected, "path": f"{tmp_path}/model.py"}]
    assert main(["migrate", "check", str(tmp_path)]) == 3
    assert "not read" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "use", "name"),
    [
        ("from helpers import tf", "tf.zeros([3])", "tf"),
        ("from helpers import tf as t", "t.zeros([3])", "tf"),
        ("from helpers import *", "layers.dense(1)", "layers"),
        ("import helpers", "helpers.tf.zeros([3])", "helpers.tf"),
        ("from . import helpers as h", "h.optimizers.Adam(1)", "h.optimizers"),
    ],
)
def test_check_names_what_another_file_passes_on_of_tensorflow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, use: str, name: str
) -> None:
    (tmp_path / "train.py").write_text(f"{line}\nother = 1\n{use}\n")
    (tmp_path / "helpers.py").write_text(
        "import tensorflow as tf\nfrom tensorflow import layers\noptimizers = tf.keras.optimizers\nother = 1\n"
    )
    assert main(["migrate", "check", str(tmp_path / "train.py"), "--html", str(tmp_path / "page.html")]) == 3
    told = f"{name}: a name of TensorFlow from {tmp_path}/helpers.py. Its uses in this file are not found"
    assert f"{tmp_path}/train.py:1: {told}" in capsys.readouterr().out
    assert told in (tmp_path / "page.html").read_text()
    main(["migrate", "check", str(tmp_path)])
    assert told in capsys.readouterr().out


def test_a_folder_that_cannot_be_listed_is_said(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`os.walk` would leave it out."""
    closed = program.parent / "closed"
    closed.mkdir()
    scandir = os.scandir

    def listed(path: Any) -> Any:
        if Path(path) == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr("os.scandir", listed)
    assert main(["migrate", "check", str(program.parent)]) == 1
    assert f"{closed}: Permission denied." in capsys.readouterr().err


def test_check_of_a_relative_import_above_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "model.py").write_text("")
    (tmp_path / "inner" / "train.py").write_text("from ..model import model_fn\nfrom .... import far\n")
    monkeypatch.chdir(tmp_path / "inner")
    assert main(["migrate", "check", "train.py"]) == 0
    assert "train.py:1: model_fn from ../model.py, which is not read" in capsys.readouterr().out


def test_check_in_the_folder_of_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("tf = None\n")
    (package / "model.py").write_text("import tensorflow as tf\n")
    (package / "train.py").write_text("from . import model\nfrom . import tf\nfrom package.model import tf as other\n")
    monkeypatch.chdir(package)
    assert main(["migrate", "check", "train.py"]) == 3
    assert capsys.readouterr().out.splitlines()[:3] == [
        "train.py:1: model, tf from model.py, which is not read: check that file, too.",
        "train.py:1: tf: a name of TensorFlow from model.py. Its uses in this file are not found: import it from "
        "TensorFlow.",
        "train.py:2: tf from __init__.py, which is not read: check that file, too.",
    ]


def test_a_file_that_is_no_python_is_said_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "old.py").write_text("print 'of Python 2'\n")
    assert main(["migrate", "check", str(tmp_path)]) == 3
    out = capsys.readouterr().out
    assert "old.py: cannot be read: line 1: it is not Python 3" in out
    assert out.endswith("1 file: 1 cannot be read.\n"), "nobody knows whether it names TensorFlow"


def test_rewrite_prints_a_diff_and_writes_nothing(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "rewrite", str(program)]) == 0
    assert '+config = ec.RunConfig("runs")' in capsys.readouterr().out
    assert program.read_text() == PROGRAM


def test_rewrite_writes_where_asked(program: Path) -> None:
    assert main(["migrate", "rewrite", "--write", str(program)]) == 0
    assert program.read_text().startswith("import estimator_core as ec\n")


def test_check_ends_with_3_while_a_note_is_left(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "rewrite", "--write", str(program)]) == 0
    capsys.readouterr()
    assert main(["migrate", "check", str(program)]) == 3
    assert ":2:1: # MIGRATE: [rewrite by hand] Follow the note, then remove it." in capsys.readouterr().out
    followed = [line for line in program.read_text().splitlines() if not line.startswith("#")]
    program.write_text("\n".join(followed))
    assert main(["migrate", "check", str(program)]) == 0


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "check", "no/such.py"]) != 0
    assert "There is no file no/such.py." in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "rewrite"])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("train.ipynb", "is a notebook, but only Python files are read. `jupyter nbconvert --to script "),
        ("train.json", "does not have the name of a Python file"),
    ],
)
def test_a_file_that_is_no_python_by_its_name_is_refused(
    command: str, name: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text of a notebook is also a valid Python expression: a dict without a name of TensorFlow."""
    path = tmp_path / name
    path.write_text('{"cells": [{"cell_type": "code", "source": ["import tensorflow as tf"]}]}')
    assert main(["migrate", command, str(path)]) == 2
    said = capsys.readouterr()
    assert f"{path} {says}" in said.err
    assert not said.out


def test_a_script_may_have_no_ending(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train").write_text(PROGRAM)
    assert main(["migrate", "check", str(tmp_path / "train")]) == 3
    assert "tf.estimator.RunConfig" in capsys.readouterr().out


LATIN = '# coding: latin-1\nimport tensorflow as tf\ntext = "\xe4\x85b"\nconfig = tf.estimator.RunConfig("runs")\n'


def test_a_coding_line_is_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(LATIN.encode("latin-1"))
    assert main(["migrate", "check", str(path), "--html", str(tmp_path / "page.html")]) == 3
    assert f"{path}:4:10: tf.estimator.RunConfig -> ec.RunConfig" in capsys.readouterr().out
    assert "<td class=n>4</td><td><pre>config" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert main(["migrate", "rewrite", "--write", str(path)]) == 0
    assert ' text = "\xe4\x85b"\n' in capsys.readouterr().out, "the diff keeps it on one line"
    changed = LATIN.replace("import tensorflow as tf", "import estimator_core as ec").replace("tf.estimator", "ec")
    lines = path.read_bytes().decode("latin-1").split("\n")
    assert [line for line in lines if not line.startswith(("# MIGRATE", "#   "))] == changed.split("\n")


UNREADABLE = {
    "bytes.py": (b'import tensorflow as tf\ntext = "\xe4"\n', "line 2: it is not UTF-8. Save it as UTF-8, or name its"),
    "late.py": (b'#\n#\n#\ntext = "\xe4"\n', "line 4: it is not UTF-8. "),
    "coding.py": (b"# coding: nosuch\n", "unknown encoding: nosuch. Save it as UTF-8"),
    "rot.py": (b"# coding: rot13\n", "'rot13' is not a text encoding"),
    "both.py": (b"\xef\xbb\xbf# coding: latin-1\n", "encoding problem: utf-8"),
}


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A directory whose first and last files can be read, with others between them."""
    for name, (content, _) in UNREADABLE.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "gone.py").symlink_to("nowhere")
    (tmp_path / "python2.py").write_text("print 'of Python 2'\n")
    for name in ("a.py", "z.py"):
        (tmp_path / name).write_text(PROGRAM)
    return tmp_path


def test_check_reports_the_files_beside_one_that_cannot_be_read(
    mixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", "check", str(mixed)]) == 3
    out = capsys.readouterr().out
    said = {Path(line.partition(":")[0]).name: line for line in out.splitlines() if "cannot be read: " in line}
    assert set(said) == {*UNREADABLE, "gone.py", "python2.py"}
    for name, (_, why) in UNREADABLE.items():
        assert f"{name}: cannot be read: {why}" in said[name]
    assert [f"{mixed / name}:2:10: tf.estimator.RunConfig" in out for name in ("a.py", "z.py")] == [True, True]
    assert out.splitlines()[-1] == "9 files: 2 behaves differently, 2 rewrite by hand, 7 cannot be read."


def test_rewrite_changes_the_files_beside_one_that_cannot_be_read(
    mixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", "rewrite", "--write", str(mixed)]) == 2
    err = capsys.readouterr().err
    for name, (content, why) in UNREADABLE.items():
        assert f"{mixed / name} cannot be read: {why}" in err
        assert (mixed / name).read_bytes() == content
    assert f"{mixed / 'python2.py'} is not Python 3: " in err
    assert all((mixed / name).read_text().startswith("import estimator_core as ec\n") for name in ("a.py", "z.py"))


def test_rewrite_changes_the_files_beside_one_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "abc":
        (tmp_path / f"{name}.py").write_text("import tensorflow as tf\nmode = tf.estimator.ModeKeys.EVAL\n")
    write_bytes = Path.write_bytes

    def refuse_one(path: Path, data: bytes) -> int:
        if path.name == "b.py":
            raise PermissionError(13, "Permission denied")
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", refuse_one)
    assert main(["migrate", "rewrite", "--write", str(tmp_path)]) == 2
    assert f"{tmp_path / 'b.py'} cannot be written: Permission denied\n" in capsys.readouterr().err
    assert ["tf." in (tmp_path / f"{name}.py").read_text() for name in "abc"] == [False, True, False]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rewrite_keeps_line_ends_and_the_mark_of_unicode(
    mark: bytes, end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.py"
    before = ["import tensorflow as tf", "# \xe4", "tf.foo()", "mode = tf.estimator.ModeKeys.EVAL"]
    path.write_bytes(mark + end.join(before).encode())
    assert main(["migrate", "rewrite", "--write", str(path)]) == 0
    content = path.read_bytes()
    assert content.startswith(mark)
    text = content.removeprefix(mark).decode()
    assert "\ufeff" not in text
    assert text.endswith(f"tf.foo(){end}mode = ec.ModeKeys.EVAL")
    assert text.count("\n") == text.count(end)
    assert "+mode = ec.ModeKeys.EVAL\n\\ No newline at end of file\n# " in capsys.readouterr().out


def test_installed_packages_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (".", "env", "env/lib", ".hidden", "lib/site-packages", "lib"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "program.py").write_text(PROGRAM)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert main(["migrate", "rewrite", "--write", str(tmp_path)]) == 0
    changed = [path for path in tmp_path.rglob("program.py") if path.read_text() != PROGRAM]
    assert sorted(changed) == [tmp_path / "lib" / "program.py", tmp_path / "program.py"]


@pytest.mark.parametrize("deep", ["+".join(["1"] * 3000), "f(" * 1500 + "1" + ")" * 1500])
def test_a_file_of_endless_nesting_is_named(deep: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deep.py").write_text(f"x = {deep}\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    assert main(["migrate", "check", str(tmp_path)]) == 3
    assert "deep.py: cannot be read: one of its expressions is nested too deeply" in capsys.readouterr().out
    assert main(["migrate", "rewrite", str(tmp_path)]) == 2
    found = capsys.readouterr()
    assert "deep.py cannot be read: one of its expressions is nested too deeply" in found.err
    assert "+config = ec.RunConfig" in found.out


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is not JSON: "),
        ('["a"]', "must map names here to names there"),
        ('{"a": 3}', "must map names here to names there"),
    ],
)
def test_names_that_cannot_be_read(
    content: str | None, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = tmp_path / "names.json"
    if content is not None:
        names.write_text(content)
    for command in (
        ["prove", "old.py", "new.py", "--recorded", "no"],
        ["checkpoint", "no", str(tmp_path / "out"), "--program", "no.py"],
    ):
        assert main(["migrate", *command, "--names", str(names)]) == 2
        assert f"--names {names} {told}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--tolerance", "nan"], "--tolerance must be a number of at least 0, given: nan."),
        (["--tolerance=-1"], "--tolerance must be a number of at least 0, given: -1.0."),
        (["--record", "there"], "--recorded does not run OLD"),
    ],
)
def test_a_proof_refuses_options(options: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "prove", "old.py", "new.py", "--recorded", "no", *options]) == 2
    assert told in capsys.readouterr().err
