"""Tests of a plugin of each kind, written before the core became thin: reported, rewritten, and sound again.

`written_before/<kind>` is the output of `estimator new-plugin --kind <kind>` at that commit. The deep paths and old
hook members that an author used were added to it, and its tests passed there. `doctor.txt` is the doctor's output.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from estimator_testing.cli.doctor import show_old_forms

BEFORE = Path(__file__).parent / "written_before"
#: The packages that a plugin needs in addition to the kit, because they now hold names that it uses.
PACKAGES = {
    "acme_format": ("estimator-signatures",),
    "acme_input": ("estimator-inputs",),
    "acme_model": ("estimator-experiment", "estimator-warm-start"),
}
KINDS = sorted(path.name for path in BEFORE.iterdir())
#: Kinds whose plugins import packages other than the core and the kit.
NEED_PACKAGES = ("format", "input", "model")
#: Tests of suites that find faults in the old output of `new-plugin`, which the old suites did not find.
FOUND_SINCE = {
    "exporter": ("test_nan_is_not_an_improvement",),
    "format": ("test_has_raw_signatures",),
    "head": ("test_loss_leaves_padding_out",),
    "model": ("test_padding_does_not_count",),
}
#: Kinds whose suites take ten seconds or more. The ordinary tests run only the others.
TAKE_LONG = ("adapter", "backend", "exporter", "format", "head", "input", "model", "transform")


def marks_of(kind: str) -> list[pytest.MarkDecorator]:
    """Returns the marks that the test of a kind needs."""
    needs = [pytest.mark.plugins] if kind in NEED_PACKAGES else []
    return [*needs, pytest.mark.slow] if kind in TAKE_LONG else needs


class Package:
    """A copy of a plugin, in the form that an installer produces.

    Args:
        kind: the kind of the plugin.
        folder: an empty folder for the copy.
    """

    def __init__(self, kind: str, folder: Path) -> None:
        shutil.copytree(BEFORE / kind, folder, dirs_exist_ok=True)
        self.folder, self.module = folder, f"acme_{kind}"
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        metadata = folder / "src" / f"{self.module}-{project['version']}.dist-info"
        metadata.mkdir()
        requires = "".join(f"Requires-Dist: {one}\n" for one in project["dependencies"])
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n{requires}"
        )
        (entry,) = project["entry-points"]["estimator.plugins"].items()
        (metadata / "entry_points.txt").write_text(f"[estimator.plugins]\n{entry[0]} = {entry[1]}\n")

    def sources(self) -> dict[str, str]:
        """Returns the text of each file."""
        return {str(path.relative_to(self.folder)): path.read_text() for path in sorted(self.folder.rglob("*.py"))}

    def doctor(self, *, fix: bool) -> str:
        """Returns the output of the doctor, without the folder."""
        printed = io.StringIO()
        with redirect_stdout(printed):
            show_old_forms(self.module, [self.folder / "tests"], fix=fix)
        return printed.getvalue().replace(f"{self.folder}{os.sep}", "")

    def require(self, printed: str) -> list[str]:
        """Adds the requirements that the doctor reports as missing, as the author would."""
        missing = re.findall(r"does not require ([\w-]+), which", printed)
        (metadata,) = self.folder.glob("src/*.dist-info/METADATA")
        metadata.write_text(metadata.read_text() + "".join(f"Requires-Dist: {one}\n" for one in missing))
        return missing

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs Python with the package on its path."""
        path = os.pathsep.join([str(self.folder / "src"), *filter(None, sys.path)])
        environ = {name: value for name, value in os.environ.items() if not name.startswith("ESTIMATOR_")}
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env={**environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )


@pytest.fixture(params=[pytest.param(kind, marks=marks_of(kind)) for kind in KINDS])
def package(request, tmp_path, monkeypatch):
    made = Package(request.param, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    return made


def test_there_is_one_of_each_kind_of_that_commit():
    kinds = ("adapter", "backend", "exporter", "format", "head", "hook", "input", "model", "transform")
    assert tuple(KINDS) == kinds


def test_the_doctor_names_what_is_old_and_its_fix_makes_the_tests_pass(package, request):
    before = package.sources()
    named = package.doctor(fix=False)
    assert named == (BEFORE / package.module.removeprefix("acme_") / "doctor.txt").read_text()
    assert package.sources() == before
    assert "by hand" not in named
    package.doctor(fix=True)
    fixed = package.sources()
    assert fixed != before
    assert package.doctor(fix=True) == ""
    assert package.sources() == fixed
    tested = package.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    failed = re.findall(r"^FAILED \S+::(\w+)", tested.stdout, re.MULTILINE)
    assert tuple(failed) == FOUND_SINCE.get(package.module.removeprefix("acme_"), ()), tested.stdout
    assert tested.returncode == (1 if failed else 0), tested.stdout
    doctor = ("-m", "estimator_core._cli.main", "plugins", "doctor", package.module, "--also", "tests")
    missing = package.require(package.python(*doctor).stdout)
    assert missing == sorted(["estimator-testing", *PACKAGES.get(package.module, ())])
    examined = package.python(*doctor)
    assert examined.returncode == 0, examined.stdout + examined.stderr
    assert "FAULT" not in examined.stdout


def test_they_do_not_pass_as_they_are(tmp_path):
    tested = Package("hook", tmp_path).python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_watch.py")
    assert tested.returncode != 0
    assert "No module named 'estimator_core.loop'" in tested.stdout
