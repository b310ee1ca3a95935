"""`estimator new-plugin` writes a package for every kind; the nox session `template` builds, installs and runs them."""

import ast
import tomllib

import pytest

from estimator_core.cli import main
from estimator_core.errors import ArgumentError
from estimator_core.plugins import KINDS, Plugins
from estimator_testing.cli.scaffold import write_package


@pytest.mark.parametrize("kind", KINDS)
def test_the_package_is_complete(tmp_path, kind):
    name, package = f"acme-{kind}-one".replace("_", "-"), f"acme_{kind}_one"
    written = write_package(name, kind, tmp_path)
    folder = tmp_path / name
    names = {path.relative_to(folder).as_posix() for path in written}
    assert {
        "pyproject.toml",
        "README.md",
        ".gitignore",
        ".github/workflows/tests.yml",
        f"src/{package}/__init__.py",
        f"src/{package}/py.typed",
        f"src/{package}/plugin.py",
        f"src/{package}/{kind}.py",
        "tests/test_plugin.py",
        f"tests/test_{kind}.py",
    } <= names
    for path in written:
        text = path.read_text()
        assert path.suffix == ".yml" or "$" not in text, f"{path} has a placeholder left"
        if path.suffix == ".py":
            ast.parse(text)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["estimator.plugins"] == {package: f"{package}.plugin"}
    assert "estimator-core>=0.1,<0.2" in project["dependencies"]
    exports = "export_saved_model" in (folder / "tests" / f"test_{kind}.py").read_text() or kind == "exporter"
    wanted = ["estimator-testing", *(["estimator-signatures"] if exports else [])]
    assert project["optional-dependencies"]["test"] == [f"{one}>=0.1,<0.2" for one in wanted]


@pytest.mark.parametrize("kind", KINDS)
def test_its_component_is_found(tmp_path, monkeypatch, kind):
    name = f"acme-{kind}-two".replace("_", "-")
    write_package(name, kind, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / name / "src"))
    module = __import__(f"acme_{kind}_two.plugin", fromlist=["plugin"])
    plugins = Plugins(autoload=False, extra=[module], environ={}, strict=True)
    assert callable(plugins.get(kind, f"acme_{kind}_two"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Acme", "lower-case words joined by hyphens"),
        ("acme_heads", "lower-case words joined by hyphens"),
        ("acme--heads", "lower-case words joined by hyphens"),
        ("class", "lower-case words joined by hyphens"),
        ("tests", "the folder of the package's tests has this name"),
        ("json", "a package 'json' is already installed"),
        ("estimator-core", "a package 'estimator_core' is already installed"),
    ],
)
def test_names_that_cannot_be_used_are_refused(tmp_path, name, message):
    with pytest.raises(ArgumentError, match=message):
        write_package(name, "head", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "kind", "taken"), [("cpu", "backend", "cpu"), ("stop-at-step", "hook", "stop_at_step")]
)
def test_the_name_of_a_component_that_exists_is_refused(tmp_path, name, kind, taken):
    with pytest.raises(ArgumentError, match=f"there is a {kind} '{taken}' already; choose another name"):
        write_package(name, kind, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "acme-new").mkdir()
    assert main(["new-plugin", "acme-new", "--kind", "head", "--dir", str(tmp_path)]) == 2
    assert "exists; choose another name or --dir" in capsys.readouterr().err
    assert list((tmp_path / "acme-new").iterdir()) == []


def test_the_command_says_what_to_do_next(tmp_path, capsys):
    assert main(["new-plugin", "acme-new", "--kind", "hook", "--dir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "wrote" in out
    assert "estimator plugins doctor acme-new" in out


def test_the_workflow_tests_the_lowest_and_the_newest_core(tmp_path):
    write_package("acme-new", "hook", tmp_path)
    text = (tmp_path / "acme-new" / ".github" / "workflows" / "tests.yml").read_text()
    assert "resolution: [lowest-direct, highest]" in text
    assert '--resolution ${{ matrix.resolution }} ".[test]"' in text
    assert "estimator plugins doctor acme_new" in text
