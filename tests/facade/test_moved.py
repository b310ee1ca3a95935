"""What lives in packages of its own: found where the package is, and named with its cure where it is not."""

import importlib
import sys
from pathlib import Path

import pytest

import estimator_core
from estimator_core import _moved
from estimator_core.cli import main
from estimator_core.errors import PluginLookupError

CURE = "comes with estimator-testing, which is not installed: pip install estimator-testing"


@pytest.fixture
def without_kit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if estimator-testing were not installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "estimator_testing"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "estimator_testing", None)


def test_the_face_of_the_kit_is_the_package() -> None:
    from estimator_core.testing import HookSuite, array_format

    assert HookSuite is importlib.import_module("estimator_testing.hook_suite").HookSuite
    assert array_format is importlib.import_module("estimator_testing.array_format")
    assert estimator_core.testing.FakeRun is importlib.import_module("estimator_testing").FakeRun


def test_an_unknown_name_of_the_face_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="cannot import name 'HookSweet'"):
        from estimator_core.testing import HookSweet  # noqa: F401 - it does not exist


def test_the_stub_types_every_name_of_the_package() -> None:
    stub = Path(str(estimator_core.__file__)).with_name("testing.pyi").read_text()
    typed = {line.rpartition(" ")[2] for line in stub.splitlines() if line.startswith("from ")}
    assert typed == set(dir(importlib.import_module("estimator_testing")))


@pytest.mark.usefixtures("without_kit")
def test_the_face_says_what_to_install() -> None:
    with pytest.raises(ModuleNotFoundError, match=rf"^estimator_core\.testing\.HookSuite {CURE}$"):
        from estimator_core.testing import HookSuite  # noqa: F401 - it is not there
    assert not hasattr(estimator_core.testing, "__path__")  # what the import system asks for needs no package


@pytest.mark.usefixtures("without_kit")
@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["plugins", "doctor", "acme"], "doctor"),
        (["plugins", "doctor", "--fix", "acme"], "doctor"),
        (["doctor", "acme"], "doctor"),
        (["new-plugin", "acme", "--kind", "head"], "new-plugin"),
    ],
)
def test_its_commands_say_what_to_install(words: list[str], command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    assert f"`estimator {command}` {CURE}" in capsys.readouterr().err


def test_a_package_that_is_there_and_broken_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_moved.py").write_text("import no_such_library_of_acme\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(_moved.MOVED, "Thing", ("acme_moved", "acme-moved"))
    monkeypatch.setitem(_moved.MOVED_COMMANDS, "thing", ("acme_moved", "acme-moved"))
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_library_of_acme'"):
        _ = estimator_core.Thing
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_library_of_acme'"):
        _moved.import_command("thing")


def test_a_command_of_nobody_stays_unknown() -> None:
    with pytest.raises(PluginLookupError, match="there is no command 'doctors'"):
        importlib.import_module("estimator_core._cli.main").find_command("doctors")
