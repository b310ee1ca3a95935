"""Tests of names and commands of separate packages: if a package is absent, the error names what to install."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import estimator_core as ec
from estimator_core import _moved
from estimator_core._plugins.loader import HEAVY_PACKAGES
from estimator_core._plugins.not_found import COMMANDS, known_distribution, known_names

PACKAGES = sorted(
    {module for module, _ in _moved.MOVED.values()}
    | {str(known_distribution(COMMANDS, name)).replace("-", "_") for name in known_names(COMMANDS)}
)
# Faces: modules of the core whose names come from a package, each with one of these names.
FACES = [("estimator_core.learn_runner", "run", "estimator-experiment")]

#: Makes installed packages absent: their modules cannot be imported, and their entry points are not found.
ABSENT = """
import sys
from importlib import metadata

packages = {packages!r}
sys.modules.update(dict.fromkeys(packages))
entry_points = metadata.entry_points
metadata.entry_points = lambda **wanted: [
    point for point in entry_points(**wanted) if point.value.partition(".")[0] not in packages
]
"""


def without_the_packages(script: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in a process where the packages are not installed."""
    program = ABSENT.format(packages=PACKAGES) + script
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)


#: Runs scripts one after another, and prints the status and the output of each.
EACH = """
import contextlib, io, json

ends = []
for script in {scripts!r}:
    said, code = io.StringIO(), 0
    try:
        with contextlib.redirect_stderr(said):
            exec(script, {{}})
    except SystemExit as end:
        code = end.code
    except Exception as error:
        code = 1
        said.write(f"{{type(error).__name__}}: {{error}}")
    ends.append((code, said.getvalue()))
print(json.dumps(ends))
"""


def each_without_the_packages(scripts: Iterable[str]) -> list[tuple[int, str]]:
    """Returns the status and the errors of scripts that run in one process without the packages."""
    done = without_the_packages(EACH.format(scripts=list(scripts)))
    return [(code, said) for code, said in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.parametrize("script", ["import estimator_core as ec; ec.{name}", "from estimator_core{face} import {own}"])
def test_a_public_name_says_which_package_brings_it(script: str) -> None:
    places = {name: name.rpartition(".") for name in sorted(_moved.MOVED)}
    ends = each_without_the_packages(
        script.format(name=name, face=f".{face}" if face else "", own=own) for name, (face, _, own) in places.items()
    )
    for name, end in zip(places, ends, strict=True):
        distribution = _moved.MOVED[name][1]
        told = f"ModuleNotFoundError: estimator_core.{name} comes with {distribution}: pip install {distribution}"
        assert end == (1, told)


@pytest.mark.parametrize(("module", "name", "distribution"), FACES)
@pytest.mark.parametrize("script", ["from {module} import {name}", "import {module}; {module}.{name}"])
def test_a_name_of_a_face_says_which_package_brings_it(module: str, name: str, distribution: str, script: str) -> None:
    done = without_the_packages(script.format(module=module, name=name))
    told = f"ModuleNotFoundError: {module}.{name} comes with {distribution}: pip install {distribution}"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, told)


def test_a_command_says_which_package_brings_it() -> None:
    commands = known_names(COMMANDS)
    ends = each_without_the_packages(
        f"from estimator_core._cli.main import main; raise SystemExit(main([{command!r}, 'x.py']))"
        for command in commands
    )
    for command, end in zip(commands, ends, strict=True):
        distribution = str(known_distribution(COMMANDS, command))
        told = (
            f"estimator {command}: error: command {command!r} comes with {distribution}, which is not installed: "
            f"pip install {distribution}\n"
        )
        assert end == (2, told)


def test_a_command_that_is_nearly_right_is_offered_all_the_same() -> None:
    done = without_the_packages("from estimator_core._cli.main import main; sys.exit(main(['rum']))")
    assert "Did you mean run?" in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["plugins"]])
def test_the_command_line_works_without_the_packages_and_imports_nothing_heavy(words: list[str]) -> None:
    done = without_the_packages(
        f"from estimator_core._cli.main import main; code = main({words!r})\n"
        "print('code', code); print('modules', *sys.modules)"
    )
    assert "code 0\n" in done.stdout, done.stderr
    assert not set(done.stdout.split("modules")[-1].split()) & HEAVY_PACKAGES


def test_what_is_not_installed_is_not_listed() -> None:
    """Otherwise a tool that reads every name of `dir()`, such as a completion, would stop at the error."""
    done = without_the_packages("import inspect, estimator_core as ec; print(*dict(inspect.getmembers(ec)))")
    listed = set(done.stdout.split())
    assert "Estimator" in listed, done.stderr
    assert not listed & set(_moved.MOVED)


@pytest.mark.plugins
def test_what_is_installed_is_listed() -> None:
    assert {name for name in _moved.MOVED if "." not in name} <= set(dir(ec))


def test_a_package_that_is_there_and_broken_keeps_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_home.py").write_text("import a_library_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'a_library_that_is_not_there'$"):
        _moved.import_moved("broken_home", "broken-home", "estimator_core.Name")


def test_what_a_module_is_asked_by_the_import_system_is_no_moved_name() -> None:
    done = without_the_packages("import estimator_core.learn_runner as face; print(hasattr(face, '__path__'))")
    assert done.stdout == "False\n", done.stderr


@pytest.mark.plugins
@pytest.mark.parametrize("command", known_names(COMMANDS))
def test_a_plugin_that_may_not_load_is_named_with_the_switch_that_loads_it(command: str) -> None:
    words = [sys.executable, "-m", "estimator_core._cli.main", "--no-plugins", command, "x.py"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    distribution = str(known_distribution(COMMANDS, command))
    assert done.returncode == 2
    assert f"comes with {distribution}, which is installed, but its plugin" in done.stderr
    assert "is blocked: the allow list is empty, as by --no-plugins" in done.stderr
    assert f"`estimator --plugins {distribution} {command} ...`" in done.stderr
