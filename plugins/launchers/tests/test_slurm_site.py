"""Tests on a real Slurm of two virtual nodes: jobs end, are stopped, killed, requeued or cancelled, also as arrays."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_launchers import JobSpec, SlurmLauncher
from estimator_launchers.launcher_suite import LauncherSuite
from estimator_launchers.launching import submit_and_follow
from plugins.launchers.tests import faults, slurm_site
from plugins.launchers.tests.processes import until
from plugins.launchers.tests.test_pages import PAGES, command, program

ASKED_FOR = os.environ.get("ESTIMATOR_TEST_SLURM") == "1"
REASON = slurm_site.missing() if ASKED_FOR else "session `slurm` runs it"
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("slurm")
    env = slurm_site.start(folder)
    with pytest.MonkeyPatch.context() as patched:
        for name, value in env.items():
            patched.setenv(name, value)
        # A program may import what the tests can import. jax must not look for its own devices.
        patched.setenv("JAX_PLATFORMS", "cpu")
        yield folder
    slurm_site.stop(folder)


@pytest.fixture
def requeued_soon(site: Path) -> Iterator[None]:
    """Makes a requeued job wait for two seconds instead of the two minutes of Slurm.

    A shorter wait fails: a node refuses credentials of the second in which it ended the job, and Slurm fails the job.
    """
    code = (
        "import subprocess, time\n"
        "told = set()\n"
        "while True:\n"
        "    said = subprocess.run(['squeue', '-h', '-o', '%i %r'], capture_output=True, text=True).stdout\n"
        "    waiting = {line.split()[0] for line in said.splitlines() if line.endswith('BeginTime')}\n"
        "    for job in waiting - told:\n"
        "        subprocess.run(['scontrol', 'update', f'jobid={job}', 'StartTime=now+2'])\n"
        "    told = waiting\n"
        "    time.sleep(1)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code])
    yield
    child.kill()
    child.wait()


@pytest.fixture
def launcher(site: Path, tmp_path: Path) -> SlurmLauncher:
    return SlurmLauncher(str(tmp_path / "jobs"))


def job_of(out: Path, *words: str, **fields: object) -> JobSpec:
    out.mkdir()
    values = {"processes": 4, "hosts": 2, "grace_secs": 60.0, **fields}
    return JobSpec(command=(sys.executable, "-c", faults.PROGRAM, str(out), "1", *words), **values)  # type: ignore[arg-type]


def ended(launcher: SlurmLauncher, job_id: str, secs: float = 240):
    until(lambda: launcher.status(job_id).ended, secs)
    return launcher.status(job_id), ["\n".join(launcher.logs(job_id, process)) for process in range(4)]


@pytest.mark.usefixtures("requeued_soon")
class TestSlurmLauncher(LauncherSuite):
    needs = {"hosts": 2}  # noqa: RUF012 - read only
    patience_secs = 200.0

    @pytest.fixture(autouse=True)
    def _folder(self, site, tmp_path):
        self.folder = str(tmp_path / "jobs")

    def make(self):
        return SlurmLauncher(self.folder)


def test_four_tasks_on_two_nodes_train_together(launcher: SlurmLauncher, tmp_path: Path) -> None:
    status, heard = faults.followed(launcher, tmp_path / "out", processes=4, hosts=2)
    assert status.phase == "succeeded", heard.text
    done = [line.split()[1:] for line in heard.done()]
    assert [words[:3] for words in done] == [["done", "4", str(index)] for index in range(4)]
    assert len({words[3] for words in done}) == 1, "the processes have different numbers"


def test_tasks_reach_each_other_where_jax_finds_the_address(launcher: SlurmLauncher) -> None:
    command = (sys.executable, "-m", "estimator_core._cli.main", "cluster", "--reach")
    lines: list[str] = []
    plan = launcher.plan(JobSpec(command=command, processes=2, hosts=2))
    status = submit_and_follow(launcher, plan, write=lines.append)
    assert status.phase == "succeeded", lines
    said = [line.split(maxsplit=2)[2] for line in sorted(lines) if line.split()[1] == "reached"]
    assert said[0].startswith("yes: all 2 processes have reached n1:"), lines
    assert said[1:] == ["yes"], lines


def test_who_ends_well_and_early_takes_nobody_along(launcher: SlurmLauncher) -> None:
    """Otherwise srun would end the others after the grace period, as it does when a task fails."""
    code = "import os, time; time.sleep(6 * (os.environ['SLURM_PROCID'] == '0')); print('done')"
    lines: list[str] = []
    plan = launcher.plan(JobSpec(command=(sys.executable, "-c", code), processes=2, hosts=2, grace_secs=2.0))
    status = submit_and_follow(launcher, plan, write=lines.append)
    assert (status.phase, status.restarts) == ("succeeded", 0), lines
    assert sorted(lines) == ["[0] done", "[1] done"]


@pytest.mark.usefixtures("requeued_soon")
def test_sigterm_saves_requeues_and_goes_on(launcher: SlurmLauncher, tmp_path: Path) -> None:
    """The signal goes to the batch script, as `--signal` sends it before the time limit."""
    out = tmp_path / "out"
    job = job_of(out, "slow", processes=2, max_restarts=2, env={"STEPS": "120"})
    job_id = launcher.submit(launcher.plan(job))
    until(lambda: (out / "step").exists() and int((out / "step").read_text() or 0) > 20, 200)
    subprocess.run(["scancel", "--signal=TERM", "--batch", job_id], check=True)
    status, logs = ended(launcher, job_id)
    assert (status.phase, status.restarts) == ("succeeded", 1), logs
    assert "its state saved at step" in logs[0]
    assert logs[0].splitlines()[-1].startswith("done 2 0")


@pytest.fixture(scope="module")
def undisturbed(site: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Returns the last line of each process of an undisturbed run."""
    folder = tmp_path_factory.mktemp("calm")
    status, heard = faults.followed(SlurmLauncher(str(folder / "jobs")), folder / "out", hosts=2)
    assert status.phase == "succeeded", heard.text
    return heard.done()


@pytest.mark.slow
@pytest.mark.usefixtures("requeued_soon")
@pytest.mark.parametrize("fault", ["kill@12", "freeze@12", "raise@12", "kill@evaluate", "kill@predict"])
def test_a_task_that_is_lost_is_named_in_time_and_nothing_is_lost(
    launcher: SlurmLauncher, tmp_path: Path, undisturbed: list[str], fault: str
) -> None:
    faults.survives(launcher, tmp_path / "out", undisturbed, fault, hosts=2)


@pytest.mark.slow
@pytest.mark.usefixtures("requeued_soon")
def test_a_task_that_is_killed_in_the_restart_too(
    launcher: SlurmLauncher, tmp_path: Path, undisturbed: list[str]
) -> None:
    faults.survives_two(launcher, tmp_path / "out", undisturbed, hosts=2)


@pytest.mark.slow
def test_scancel_ends_it_and_it_can_go_on(launcher: SlurmLauncher, tmp_path: Path) -> None:
    out = tmp_path / "out"
    job = job_of(out, "slow", processes=2, max_restarts=2, env={"STEPS": "100000"})
    job_id = launcher.submit(launcher.plan(job))
    until(lambda: (out / "step").exists(), 200)
    subprocess.run(["scancel", job_id], check=True)
    status, _ = ended(launcher, job_id)
    assert (status.phase, status.restarts) == ("resumable", 0)


def test_an_array_is_as_many_runs_of_their_own(launcher: SlurmLauncher, tmp_path: Path) -> None:
    code = (
        "import os, estimator_core as ec; c = ec.RunConfig()\n"
        "print(os.environ['SLURM_ARRAY_TASK_ID'], c.is_chief, c.process_group)"
    )
    job = JobSpec(command=(sys.executable, "-c", code), options={"array": "0-2"})
    job_id = launcher.submit(launcher.plan(job))
    until(lambda: launcher.status(job_id).ended, 200)
    assert launcher.status(job_id).phase == "succeeded"
    said = [list(launcher.logs(f"{job_id}_{task}", 0)) for task in range(3)]
    assert said == [[f"{task} True None"] for task in range(3)]


def test_an_evaluator_beside_the_tasks(launcher: SlurmLauncher, tmp_path: Path) -> None:
    code = (
        "import estimator_core as ec; c = ec.RunConfig(); g = c.process_group\n"
        "print(c.task_type, c.task_id, g and (g.count, g.index))"
    )
    job = JobSpec(command=(sys.executable, "-c", code), processes=2, hosts=2, evaluator=True)
    job_id = launcher.submit(launcher.plan(job))
    until(lambda: launcher.status(job_id).ended, 200)
    assert launcher.status(job_id).phase == "succeeded"
    assert [list(launcher.logs(job_id, process)) for process in range(3)] == [
        ["chief 0 (2, 0)"],
        ["worker 0 (2, 1)"],
        ["evaluator 0 None"],
    ]


def test_the_secret_is_in_a_file_of_its_owner_alone(launcher: SlurmLauncher, tmp_path: Path) -> None:
    job_id = launcher.submit(launcher.plan(JobSpec(command=("true",))))
    until(lambda: launcher.status(job_id).ended, 200)
    path = tmp_path / "jobs" / job_id / "secret"
    assert (path.stat().st_mode & 0o777, len(path.read_text())) == (0o600, 64)
    shown = subprocess.run(["scontrol", "show", "job", job_id], capture_output=True, text=True, check=True).stdout
    assert path.read_text() not in shown


@pytest.mark.slow
@pytest.mark.usefixtures("site")
@pytest.mark.skipif(not PAGES.is_dir(), reason="the pages are not beside these tests")
def test_from_an_empty_folder_by_the_page(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(program("local.md"))
    words = command("slurm.md", "estimator launch --on slurm --processes 2")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len([line for line in done.stdout.splitlines() if "metrics {" in line]) == 2, done.stdout
