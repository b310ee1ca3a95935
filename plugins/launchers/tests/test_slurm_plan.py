"""Tests of the batch script without Slurm: its content, and that bash can run it."""

import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from estimator_core.errors import ArgumentError
from estimator_launchers import JobSpec, LaunchError, SlurmLauncher
from estimator_launchers.launcher_suite import LauncherSuite


class TestSlurmPlans(LauncherSuite):
    reachable = False

    def make(self):
        return SlurmLauncher("/shared/jobs")


def script(**fields) -> str:
    job = JobSpec(**{"command": ("python", "train.py", "a b"), "processes": 4, "hosts": 2, **fields})
    return SlurmLauncher("/shared/jobs").plan(job).files[0].text


def test_what_sbatch_is_told():
    text = script(
        max_restarts=3,
        grace_secs=90.5,
        time_limit_secs=3601,
        env={"A": "it's"},
        options={"partition": "gpu", "gres": "gpu:8"},
        devices=4,
    )
    for line in (
        "#SBATCH --ntasks=4",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=2",
        "#SBATCH --requeue",
        "#SBATCH --open-mode=append",
        "#SBATCH --signal=B:TERM@91",
        "#SBATCH --time=61",
        "#SBATCH --partition=gpu",
        "#SBATCH --gres=gpu:8",
        "export A='it'\"'\"'s'",
    ):
        assert line in text.splitlines()
    assert "python train.py 'a b'" in text
    assert "XLA_FLAGS" not in text  # the cards are real
    assert "xla_force_host_platform_device_count=4" in script(devices=4)
    assert "#SBATCH --no-requeue" in script()


@pytest.mark.parametrize("array", [{}, {"array": "0-1"}])
def test_directives_quote_spaces_and_signs(array):
    job = JobSpec(command=("python",), options={"constraint": "a&b #c", **array})
    lines = SlurmLauncher("/my jobs/50%x").plan(job).files[0].text.splitlines()
    told = dict(
        shlex.split(line)[1].removeprefix("--").split("=", 1)
        for line in lines
        if line.startswith("#SBATCH") and "=" in line
    )
    assert told["output"] == f"/my jobs/50%%x/%x-{'%A-%a' if array else '%j'}.out"
    assert told["constraint"] == "a&b #c"


def test_bash_reads_it():
    done = subprocess.run(["bash", "-n"], input=script(evaluator=True), text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


SRUN = """#!/bin/bash
while [ "$1" != bash ]; do shift; done
[ "$ROLE" = evaluator ] && exec "$@"
for SLURM_PROCID in 0 1; do export SLURM_PROCID; "$@" & done
wait
"""


@pytest.mark.parametrize(
    ("first", "second", "evaluator", "outcome", "why"),
    [
        (0, 0, 0, 0, ""),
        (0, 137, 0, 75, "process 1: ended by SIGKILL"),
        (0, 170, 0, 170, "process 1: failed with status 170"),  # no signal has the number 42
        (0, 0, 3, 3, "process 2: failed with status 3"),
        (0, 0, 170, 170, "process 2: failed with status 170"),
        (0, 0, 137, 75, "process 2: ended by SIGKILL"),
    ],
)
def test_what_the_script_makes_of_statuses(
    tmp_path: Path, first: int, second: int, evaluator: int, outcome: int, why: str
):
    """Runs the whole script, with programs in place of those of Slurm."""
    for name, text in {"srun": SRUN, "scontrol": "#!/bin/sh\necho n1\n", "scancel": "#!/bin/sh\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    ends = ("sh", "-c", f"case $ROLE$SLURM_PROCID in *0) exit {first};; *1) exit {second};; *) exit {evaluator};; esac")
    job = JobSpec(command=ends, processes=2, evaluator=True)
    told = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n1"}
    text = SlurmLauncher(str(tmp_path)).plan(job).files[0].text
    done = subprocess.run(["bash"], input=text, env=told, text=True, capture_output=True, check=False)
    assert done.returncode == outcome, done.stderr
    (tmp_path / "squeue").write_text("#!/bin/sh\n")
    (tmp_path / "squeue").chmod(0o755)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", told["PATH"])
        status = SlurmLauncher(str(tmp_path)).status("7")
    assert status.exit_status == {0: 0, 75: 75}.get(outcome, 1)
    assert not why or why in status.why


@pytest.mark.parametrize(("processes", "other", "least"), [(2, "sleep 1.5", 1.5), (4, "sh -c 'exit 3'", 0.0)])
def test_who_ends_well_stays_until_all_have_ended_or_one_has_failed(
    tmp_path: Path, processes: int, other: str, least: float
):
    """srun counts the grace period from the first task that ends, however it ends. Two of the four tasks never end."""
    began = time.monotonic()
    begun = f"SLURM_PROCID=1 task {other} >/dev/null 2>&1 &\nSLURM_PROCID=0 task true; echo $?"
    assert ended(tmp_path, begun, processes) == ("0\n", "")
    assert time.monotonic() - began >= least


def ended(folder: Path, begun: str, processes: int) -> tuple[str, str]:
    """Returns the output of the lines that begin tasks."""
    (tasks,) = re.findall(r"^task\(\) {$.*?(?=^export -f task)", script(processes=processes), re.DOTALL | re.MULTILINE)
    for name in ("placed", "ended"):
        (folder / name).mkdir()
    known = {"JOB_FOLDER": str(folder), "ATTEMPT": "0", "ROLE": "trainer"}
    env = {**os.environ, **known, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", f"{tasks}\n{begun}"], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_a_signal_while_the_end_is_noted_leaves_the_note_whole(tmp_path: Path, signal: str):
    """Slurm sends signals to all processes of a step. The signal arrives during the first `date`."""
    date = f'#!/bin/bash\nmkdir "{tmp_path}/met" 2>/dev/null && kill -{signal} $$\nexec {shutil.which("date")} "$@"\n'
    (tmp_path / "date").write_text(date)
    (tmp_path / "date").chmod(0o755)
    ended(tmp_path, "SLURM_PROCID=0 task false", 2)
    when, place, status = (tmp_path / "ended" / "0.0").read_text().split()
    assert (place, status) == ("0", "1")
    assert 0 <= time.time_ns() - int(when) < 60e9


def test_as_many_processes_start_again_as_before():
    with pytest.raises(ArgumentError, match="leave out --min-processes"):
        script(min_processes=2)


def test_an_image_is_refused():
    with pytest.raises(ArgumentError, match="apptainer exec"):
        script(image="x")


def test_without_slurm_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    launcher = SlurmLauncher(str(tmp_path))
    with pytest.raises(LaunchError, match="sbatch is not installed here"):
        launcher.submit(launcher.plan(JobSpec(command=("x",))))


def test_a_job_between_its_attempts_has_not_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Slurm briefly reports such a job as cancelled."""
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho CANCELLED\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    launcher, folder = SlurmLauncher(str(tmp_path / "jobs")), tmp_path / "jobs" / "7"
    folder.mkdir(parents=True)
    (folder / "requeued").touch()
    assert launcher.status("7").phase == "pending"
    os.utime(folder / "requeued", (1, 1))
    assert launcher.status("7").phase == "resumable"
    (folder / "outcome").write_text("3")
    (folder / "why").write_text("1 3\n")
    assert (launcher.status("7").phase, launcher.status("7").why) == ("failed", "process 1: failed with status 3")
