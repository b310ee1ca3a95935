"""Tests of processes of this machine that are killed, freeze or fail, in every part of a program and in a restart."""

from pathlib import Path

import pytest

from estimator_launchers import LocalLauncher
from plugins.launchers.tests import faults

pytestmark = [pytest.mark.slow, pytest.mark.plugins]  # estimator-cluster


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Returns the last line of each process of an undisturbed run."""
    folder = tmp_path_factory.mktemp("calm")
    status, heard = faults.followed(LocalLauncher(str(folder / "jobs")), folder / "out")
    assert status.phase == "succeeded", heard.text
    return heard.done()


@pytest.mark.parametrize("how", ["kill", "freeze", "raise"])
@pytest.mark.parametrize("where", ["12", "evaluate", "predict"])
def test_who_is_lost_is_named_in_time_and_nothing_is_lost(
    tmp_path: Path, undisturbed: list[str], how: str, where: str
) -> None:
    faults.survives(LocalLauncher(str(tmp_path / "jobs")), tmp_path / "out", undisturbed, f"{how}@{where}")


def test_who_is_killed_in_the_restart_too(tmp_path: Path, undisturbed: list[str]) -> None:
    faults.survives_two(LocalLauncher(str(tmp_path / "jobs")), tmp_path / "out", undisturbed)
