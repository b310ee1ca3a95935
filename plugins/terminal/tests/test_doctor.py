"""Tests of `estimator doctor`, and of packages that are replaced during a run."""

import json
import logging
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from estimator_core.cli import main
from estimator_core.errors import PreemptedError
from estimator_core.testing import FakeRun
from estimator_terminal import checks, installed_packages, plugin, replaced_packages, versions


@pytest.fixture(autouse=True)
def no_training_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_began", [])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for packages that one test installs and replaces."""
    install(tmp_path, "acme", "1.0")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def install(site: Path, name: str, version: str, *requires: str) -> None:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {one}" for one in requires)]
    (folder / "METADATA").write_text("\n".join(lines) + "\n")
    (folder / "RECORD").write_text("")


def test_the_command_and_its_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model-dir", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {one["check"] for one in found} == {"versions", "plugins", "devices", "disk", "permissions", "run"}
    assert [one for one in found if one["fault"]] == []
    assert main(["doctor"]) == 0
    assert "ok     devices: " in capsys.readouterr().out


def test_the_name_of_a_plugin_leads_to_the_other_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "acme"]) == 2
    assert "estimator plugins doctor acme" in capsys.readouterr().err


def test_versions_that_do_not_fit(site: Path) -> None:
    install(site, "caller", "1.0", "acme>=2", "absent-package>=1", "other; extra == 'more'")
    assert versions.unfit_versions(["caller", "acme", "not-there"]) == [
        'caller 1.0 requires acme>=2, but 1.0 is installed: pip install "acme>=2"',
        'caller 1.0 requires absent-package, which is not installed: pip install "absent-package>=1"',
    ]


def test_a_fault_is_the_exit_code(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda path: SimpleNamespace(free=1 << 20))
    assert main(["doctor", "--model-dir", str(site / "runs" / "later")]) == 1
    assert f"FAULT  disk: 0.0 GiB are free at {site}" in capsys.readouterr().out


def test_a_directory_that_cannot_be_written_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuses(dir: Path) -> None:
        raise PermissionError(13, "Permission denied", str(dir))

    monkeypatch.setattr(checks.tempfile, "TemporaryFile", refuses)
    faults = [found.text for found in checks.check_directory(tmp_path) if found.fault]
    assert faults[0].startswith(f"nothing can be written to {tmp_path}")


def test_a_run_of_other_versions(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"versions": {"estimator-core": "0.0.1", "absent": "1"}}))
    (found,) = checks.check_run(tmp_path)
    assert "was made with estimator-core 0.0.1" in found.text


def test_packages_that_were_replaced(site: Path) -> None:
    install(site, "gone", "3.1")
    before = installed_packages()
    assert replaced_packages(before) == []
    shutil.rmtree(site / "acme-1.0.dist-info")
    install(site, "acme", "1.1")
    shutil.rmtree(site / "gone-3.1.dist-info")
    install(site, "new", "0.1")
    assert replaced_packages(before) == [
        "acme 1.1 was installed in place of 1.0",
        "gone 3.1 was removed",
        "new 0.1 was installed",
    ]


def test_the_same_version_again_counts(site: Path) -> None:
    before = installed_packages()
    os.utime(site / "acme-1.0.dist-info" / "RECORD", ns=(1, 1))
    assert replaced_packages(before) == ["acme 1.0 was installed again"]


@pytest.mark.parametrize(
    ("error", "mode", "told"),
    [
        (AttributeError("no attribute 'x'"), "train", True),
        (None, "train", False),
        (PreemptedError("interrupted"), "train", False),
        (AttributeError("no attribute 'x'"), "eval", False),
    ],
)
def test_a_failure_names_what_was_replaced(
    site: Path, caplog: pytest.LogCaptureFixture, error: BaseException | None, mode: str, told: bool
) -> None:
    run = FakeRun(mode=mode)
    plugin.estimator_run_start(replace(run))  # each call of an observer has its own view of the run
    plugin.estimator_run_end(replace(run), None)
    shutil.rmtree(site / "acme-1.0.dist-info")
    install(site, "acme", "1.1")
    plugin.estimator_run_start(replace(run))  # the second training of the process
    with caplog.at_level(logging.WARNING, logger="estimator_terminal"):
        plugin.estimator_run_end(replace(run), error)
    assert ("acme 1.1 was installed in place of 1.0" in caplog.text) == told


def test_a_folder_that_joined_sys_path_replaces_nothing(
    site: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin.estimator_run_start(FakeRun())
    more = tmp_path / "more"
    more.mkdir()
    install(more, "later", "1.0")
    monkeypatch.syspath_prepend(str(more))
    plugin.estimator_run_end(FakeRun(), AttributeError("x"))
    assert caplog.text == ""


def test_a_failure_without_a_replacement_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    run = FakeRun()
    plugin.estimator_run_start(run)
    plugin.estimator_run_end(run, AttributeError("x"))
    assert caplog.text == ""


DEVICES = """
import jax, numpy as np
from estimator_terminal.devices import faults_of

jit, devices = jax.jit, jax.local_devices()


def faulty(fault):
    def broken(function):
        def call(*arrays):
            result = jit(function)(*arrays)
            if fault == "raises" and result.device == devices[2]:
                raise RuntimeError("the chip is hot")
            of = {"computes": result.ndim == 2, "keeps": result.ndim == 1}
            if of.get(fault) and result.device == devices[2]:
                return result.at[3].add(1)
            return result + 1 if fault == "sums" and result.ndim == 0 else result

        return call

    return broken


for fault in ("nothing", "computes", "keeps", "raises", "sums"):
    jax.jit = faulty(fault)
    print(fault, *(text.replace(str(devices[2]), "DEVICE") for text in faults_of(devices)), sep=": ")
"""


def test_each_device_computes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEVICES],
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "nothing",
        "computes: DEVICE computes 512 of 262144 numbers of a product wrongly",
        "keeps: DEVICE returns 1 of 16777216 numbers changed",
        "raises: DEVICE fails: RuntimeError: the chip is hot",
        "sums: 4 devices together compute 11 as the sum of 1 to 4",
    ]


def test_a_faulty_device_is_a_fault_of_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [finding.fault for finding in checks.check_devices(compute=True)] == [False, False]
    monkeypatch.setattr("estimator_terminal.devices.faults_of", lambda devices: ["TPU_3 is broken"])
    assert [finding.text for finding in checks.check_devices(compute=True) if finding.fault] == ["TPU_3 is broken"]
    assert not any(finding.fault for finding in checks.check_devices())
