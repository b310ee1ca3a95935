"""Tests that `estimator_core.testing` is the package estimator-testing. If it is absent, the error names what to
install.
"""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import estimator_core

CURE = "comes with estimator-testing"
#: Makes the package absent: its modules cannot be imported, and its entry point is not found.
ABSENT = """
import sys
from importlib import metadata

sys.modules["estimator_testing"] = None
entry_points = metadata.entry_points
metadata.entry_points = lambda **wanted: [
    point for point in entry_points(**wanted) if point.value.partition(".")[0] != "estimator_testing"
]
"""


def without_the_kit(script: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in a process where estimator-testing is not installed."""
    command = [sys.executable, "-c", ABSENT + script]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_the_face_is_the_package() -> None:
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


@pytest.mark.parametrize(
    "script", ["from estimator_core.testing import HookSuite", "import estimator_core as ec; ec.testing.HookSuite"]
)
def test_the_face_says_what_to_install(script: str) -> None:
    done = without_the_kit(script)
    told = f"ModuleNotFoundError: estimator_core.testing.HookSuite {CURE}: pip install estimator-testing"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, told)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["plugins", "doctor", "acme"], "plugin-doctor"),
        (["plugins", "doctor", "--fix", "acme"], "plugin-doctor"),
        (["plugin-doctor", "acme"], "plugin-doctor"),
        (["new-plugin", "acme", "--kind", "head"], "new-plugin"),
    ],
)
def test_its_commands_say_what_to_install(words: list[str], command: str) -> None:
    done = without_the_kit(f"from estimator_core._cli.main import main; sys.exit(main({words!r}))")
    told = f"command {command!r} {CURE}, which is not installed: pip install estimator-testing\n"
    assert (done.returncode, done.stderr) == (2, f"estimator {words[0]}: error: {told}")


def test_the_rest_of_the_core_does_not_miss_it() -> None:
    done = without_the_kit("from estimator_core._cli.main import main; sys.exit(main(['plugins']) or main(['--help']))")
    assert done.returncode == 0, done.stderr
    assert "estimator-testing" not in done.stdout
