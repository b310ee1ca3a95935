"""Tests of processes of this machine that are killed, stopped, frozen, fail or start again, also with an evaluator."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from estimator_core.errors import ArgumentError
from estimator_launchers import JobSpec, LocalLauncher, launch
from estimator_launchers.contract import Plan
from estimator_launchers.environment import SECRET, trainer_environment
from estimator_launchers.launching import submit_and_follow
from estimator_launchers.outcome import outcome
from plugins.launchers.tests import processes
from plugins.launchers.tests.processes import ENDS, python, runs, shell, until


@pytest.fixture(autouse=True)
def _own_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("JAX_LOCAL_DEVICE_IDS", raising=False)


@pytest.mark.parametrize(
    ("ends", "restarts", "status", "says"),
    [
        (["1=1"], "2", 1, "process 1: failed with status 1"),
        (["1=1", "0=75"], "2", 1, "failed"),  # the process that hears of the failure may end first
        (["1=75"], "0", 75, "process 1: stopped early, can continue"),
        (["1=75"], "1", 0, "starting all processes again (1 of 1)"),
        (["1=SIGKILL"], "0", 75, "process 1: ended by SIGKILL"),
        (["1=SIGKILL", "0=wait0.5!"], "1", 0, f"process 1 on {socket.gethostname()} has ended: ended by SIGKILL"),
        (["1=SIGABRT"], "1", 0, "starting all processes again"),
        (["1=75!"], "2", 75, "starting all processes again (2 of 2)"),
        (["1=freeze", "0=75"], "1", 0, "process 1 did not end; it is killed."),
        (["1=wait1", "1=SIGKILL"], "1", 0, f"process 1 on {socket.gethostname()} has ended: ended by SIGKILL"),
        (["1=170"], "2", 1, "process 1: failed with status 170"),  # no signal has the number 42
        (["1=SIGRTMIN"], "0", 75, "process 1: ended by SIGRTMIN"),
    ],
)
def test_how_it_ends(ends: list[str], restarts: str, status: int, says: str, tmp_path: Path) -> None:
    words = ("--processes", "2", "--max-restarts", restarts, "--grace-secs", "2")
    done = processes.launch(*words, *python(ENDS, str(tmp_path / "mark"), *ends))
    assert done.returncode == status, done.stdout + done.stderr
    assert says in done.stderr
    if status == 0:
        assert sorted(set(done.stdout.splitlines())) == ["[0] done", "[1] done"]


@pytest.mark.parametrize(
    ("ends", "least", "said", "together"),
    [
        (["1=SIGKILL", "0=wait0.5!", "2=wait0.5!"], "1", "starting again without 1, 2 together (1 of 1), ", 2),
        (["1=freeze", "0=75", "2=75"], "2", "starting again without 1, 2 together (1 of 1), ", 2),
        (["1=SIGKILL", "0=wait0.5!", "2=wait0.5!"], "3", "starting all processes again (1 of 1), ", 3),
        (["1=75", "0=75", "2=75"], "1", "starting all processes again (1 of 1), ", 3),  # all processes can continue
    ],
)
def test_those_that_are_left_go_on(ends: list[str], least: str, said: str, together: int, tmp_path: Path) -> None:
    code = ENDS + "print(os.environ['JAX_NUM_PROCESSES'], 'together')\n"
    words = ("--processes", "3", "--max-restarts", "1", "--min-processes", least, "--grace-secs", "2")
    done = processes.launch(*words, *python(code, str(tmp_path / "mark"), *ends))
    assert done.returncode == 0, done.stdout + done.stderr
    assert said in done.stderr
    last = sorted({line for line in done.stdout.splitlines() if f"] {together} together" in line})
    assert last == [f"[{index}] {together} together" for index in range(together)]


def test_fewer_processes_start_again_although_none_is_lost() -> None:
    code = (
        "import os, signal, sys, time\n"
        "me, attempt = os.environ['JAX_PROCESS_ID'], os.environ['ESTIMATOR_ATTEMPT']\n"
        "if attempt == '0' and me == '1': os.kill(os.getpid(), signal.SIGKILL)\n"
        "if attempt == '1': sys.exit(75)\n"
        "time.sleep(0.5)\n"
    )
    words = ("--processes", "3", "--max-restarts", "2", "--min-processes", "1", "--grace-secs", "5")
    done = processes.launch(*words, *python(code))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "starting again without 1, 2 together (1 of 2), " in done.stderr
    assert "starting again, 2 together (2 of 2), " in done.stderr


@pytest.mark.slow
@pytest.mark.plugins  # estimator-cluster
def test_a_run_that_loses_a_process_goes_on_with_the_others(tmp_path: Path) -> None:
    """The run continues at the same example, because the second attempt begins at a saved step."""
    code = (
        "import os, signal, sys\n"
        "import jax.numpy as jnp, numpy as np, optax, estimator_core as ec\n"
        "def model_fn(features, labels, mode):\n"
        "    ec.tensor('number', features['number'])\n"
        "    loss = jnp.mean((features['x'] @ ec.get_variable('w', (2,)) - labels) ** 2)\n"
        "    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(1e-2))\n"
        "me, first = os.environ['JAX_PROCESS_ID'], os.environ['ESTIMATOR_ATTEMPT'] == '0'\n"
        "class Seen(ec.Hook):\n"
        "    def begin(self, run): run.fetch('number')\n"
        "    def next_step(self, step): return step + 1\n"
        "    def after_step(self, run, step, out):\n"
        "        print('step', step, np.asarray(out['number']).tolist(), flush=True)\n"
        "        if first and step == 12 and me == '1': os.kill(os.getpid(), signal.SIGKILL)\n"
        "x = np.arange(2400, dtype=np.float32).reshape(1200, 2) / 2400\n"
        "data = {'x': x, 'number': np.arange(1200, dtype=np.int32)}\n"
        "feed = ec.inputs.numpy_input_fn(data, x.sum(1), batch_size=4, num_epochs=1, shuffle=False)\n"
        "config = ec.RunConfig(model_dir=sys.argv[1], save_checkpoints_steps=10, default_hooks=False)\n"
        "ec.Estimator(model_fn, config=config).train(feed, max_steps=20, hooks=[Seen()])\n"
    )
    command = (sys.executable, "-c", code, str(tmp_path / "run"))
    job = JobSpec(command=command, processes=3, max_restarts=1, min_processes=2, env={"JAX_PLATFORMS": "cpu"})
    lines: list[str] = []
    status = launch(job, write=lines.append)
    assert (status.phase, status.restarts) == ("succeeded", 1), lines
    seen = [line.split(maxsplit=3)[2:] for line in lines if line.startswith("[0] step ")]
    steps = [int(step) for step, _ in seen]
    again = len(steps) - steps[::-1].index(11) - 1
    numbers = [json.loads(numbers) for _, numbers in seen]
    assert numbers[9] == list(range(108, 120)), "ten steps of three processes read 120 examples"
    assert numbers[again] == list(range(120, 128)), "two processes continue at the next one"
    assert steps[-1] == 20


@pytest.mark.parametrize(
    ("statuses", "together"),
    [
        ([0, 0], 0),
        ([0, 75], 75),
        ([-9, 1, 1], 75),  # the others fail as a result of the kill
        ([1, -9], 1),
        ([-6, 1], 1),
        ([134, 75, -6], 75),
        ([137, 1], 75),
        ([75, 3, 1], 3),
        ([170, 75], 170),
        ([-40, 1], 75),
    ],
)
def test_statuses_in_the_order_of_ending(statuses: list[int], together: int) -> None:
    assert outcome(statuses) == together


def test_sigterm_is_passed_on_and_the_job_can_go_on(tmp_path: Path) -> None:
    code = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))\n"
        "print('ready', flush=True); time.sleep(100)"
    )
    command = [sys.executable, "-m", "estimator_core._cli.main", "launch", "--processes", "2", "--max-restarts", "3"]
    child = subprocess.Popen([*command, *python(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert sorted(child.stdout.readline() for _ in range(2)) == ["[0] ready\n", "[1] ready\n"]
    child.terminate()
    _, said = child.communicate(timeout=60)
    assert child.returncode == 75, said
    assert "starting all processes again" not in said


def test_a_second_signal_kills_those_that_do_not_end(tmp_path: Path) -> None:
    """The test ends long before the end of the grace period."""
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: None)\n"
        "print(os.getpid(), flush=True)\n"
        "while True: time.sleep(1)"
    )
    words = ["launch", "--processes", "2", "--evaluator", "--grace-secs", "1000", *python(code)]
    command = [sys.executable, "-m", "estimator_core._cli.main", *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stderr is not None
    pids = [int(child.stdout.readline().split()[1]) for _ in range(3)]
    child.terminate()
    said = next(line for line in child.stderr if "SIGTERM" in line)
    assert "this command waits up to 1000 s for them. A second signal kills them at once." in said
    assert all(runs(pid) for pid in pids)

    def all_ended() -> bool:  # a signal that arrives together with the first counts as the first
        if ended := not any(runs(pid) for pid in pids):
            return ended
        child.send_signal(signal.SIGINT)
        return False

    until(all_ended)
    child.communicate(timeout=60)
    assert child.returncode == 75


def test_sigterm_during_the_submission_ends_the_job(tmp_path: Path) -> None:
    class TerminatedAtSubmission(LocalLauncher):
        def submit(self, plan: Plan) -> str:
            job_id = super().submit(plan)
            assert next(self.logs(job_id, 0)) == "ready"
            os.kill(os.getpid(), signal.SIGTERM)
            return job_id

    launcher = TerminatedAtSubmission()
    before = signal.getsignal(signal.SIGTERM)
    lines: list[str] = []
    command = ("sh", "-c", "trap 'exit 75' TERM; echo ready; while :; do sleep 0.1; done")
    plan = launcher.plan(JobSpec(command=command, processes=1))
    assert submit_and_follow(launcher, plan, write=lines.append).exit_status == 75
    assert lines[0] == "[0] ready"  # some shells also report that their `sleep` is terminated
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_signal_ends_a_submission_that_hangs() -> None:
    class Hangs(LocalLauncher):
        def submit(self, plan: Plan) -> str:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.05)
            raise AssertionError("nobody listens")

    launcher = Hangs()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            submit_and_follow(launcher, launcher.plan(JobSpec(command=("true",), processes=1)))
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_a_shell_has_started_saves_before_the_job_ends(tmp_path: Path) -> None:
    """The shell ends at once after SIGTERM, and does not forward it."""
    command = [sys.executable, "-m", "estimator_core._cli.main", "launch", "--processes", "1", "--grace-secs", "20"]
    with subprocess.Popen([*command, "--", *shell("$PROGRAM")], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        pid = int(child.stdout.readline().split()[1])
        child.terminate()
        assert child.wait(60) == 75
        assert not runs(pid)
        assert child.stdout.read() == "[0] saved\n"


def test_a_killed_launcher_takes_its_processes_with_it(tmp_path: Path) -> None:
    code = "import os, pathlib, sys, time; pathlib.Path(sys.argv[1], str(os.getpid())).touch(); time.sleep(100)"
    pids = tmp_path / "pids"
    pids.mkdir()
    command = [sys.executable, "-m", "estimator_core._cli.main", "launch", "--processes", "2", "--grace-secs", "5"]
    with subprocess.Popen([*command, *python(code, str(pids))]) as child:
        until(lambda: len(list(pids.iterdir())) == 2)
        child.kill()
    until(lambda: not any(Path("/proc", path.name).exists() for path in pids.iterdir()), 30)


def test_the_evaluator_runs_beside_trainers_that_start_again(tmp_path: Path) -> None:
    code = (
        "import json, os, pathlib, sys, time\n"
        "task = json.loads(os.environ['TF_CONFIG'])['task']; out = pathlib.Path(sys.argv[1])\n"
        "mark = out / f\"{task['type']}{task['index']}\"\n"
        "mark.write_text(mark.read_text() + 'x' if mark.exists() else 'x')\n"
        "if task['type'] == 'evaluator':\n"
        "    assert 'JAX_PROCESS_ID' not in os.environ\n"
        "    while (out / 'chief0').read_text() != 'xx': time.sleep(0.05)\n"
        "elif mark.read_text() == 'x': sys.exit(75)\n"
        f"print(task['type'], len(os.environ['{SECRET}']))\n"
    )
    (tmp_path / "chief0").write_text("")
    job = JobSpec(
        command=(sys.executable, "-c", code, str(tmp_path)), processes=2, evaluator=True, max_restarts=1, grace_secs=10
    )
    lines: list[str] = []
    status = launch(job, write=lines.append)
    assert (status.phase, status.restarts) == ("succeeded", 1), lines
    assert sorted(lines) == ["[0] chief 64", "[1] worker 64", "[2] evaluator 64"]
    assert (tmp_path / "evaluator0").read_text() == "x"


#: An evaluator whose words say how each start ends. The trainers wait for its last start, and save.
BESIDE = """
import json, os, pathlib, signal, sys, time
out, ends = pathlib.Path(sys.argv[1]), sys.argv[2:]
ready = out.with_name("ready")
if json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "evaluator":
    start = len(list(out.iterdir()))
    (out / str(start)).touch()
    while len(list(ready.iterdir())) < 2: time.sleep(0.05)
    end = ends[start] if start < len(ends) else "0"
    if end.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, end))
    sys.exit(int(end))
signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(75)))
(ready / os.environ["JAX_PROCESS_ID"]).touch()
deadline = time.monotonic() + 60
while time.monotonic() < deadline and len(list(out.iterdir())) < int(os.environ["STARTS"]):
    time.sleep(0.05)
time.sleep(1)
print("trained", os.environ["ESTIMATOR_ATTEMPT"], flush=True)
"""


def beside(out: Path, *ends: str, restarts: str = "3", starts: int = 1) -> "subprocess.CompletedProcess[str]":
    """Runs two processes that train, and an evaluator that ends as the words say."""
    out.mkdir()
    out.with_name("ready").mkdir()
    words = ("--processes", "2", "--evaluator", "--max-restarts", restarts, "--grace-secs", "20")
    return processes.launch(*words, *python(BESIDE, str(out), *ends), env={**os.environ, "STARTS": str(starts)})


@pytest.mark.parametrize("how", ["SIGKILL", "SIGABRT", "75"])
def test_a_lost_evaluator_is_named_and_starts_again_while_the_others_train(how: str, tmp_path: Path) -> None:
    done = beside(tmp_path / "out", how, how, starts=3)
    assert done.returncode == 0, done.stdout + done.stderr
    named = f"the evaluator on {socket.gethostname()} has ended: "
    said = [line.removeprefix("estimator launch: ") for line in done.stderr.splitlines() if "evaluator" in line]
    assert [line.startswith(named) for line in said] == [True, False, True, False]
    assert said[1::2] == ["starting the evaluator again (1 of 3)", "starting the evaluator again (2 of 3)"]
    assert sorted(done.stdout.splitlines()) == ["[0] trained 0", "[1] trained 0"]


def test_a_lost_evaluator_without_a_restart_is_named_and_training_goes_on(tmp_path: Path) -> None:
    done = beside(tmp_path / "out", "SIGKILL", restarts="0")
    assert done.returncode == 75, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0] trained 0", "[1] trained 0"]
    _, named, kept, last = done.stderr.splitlines()
    assert named.endswith("has ended: ended by SIGKILL")
    assert "the evaluator does not start again: --max-restarts 0 allows no more." in kept
    assert last == "estimator launch: resumable: the evaluator: ended by SIGKILL"


def test_an_evaluator_that_fails_is_named_and_ends_the_job_at_once(tmp_path: Path) -> None:
    done = beside(tmp_path / "out", "1", starts=99)
    assert done.returncode == 1, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0] saved", "[1] saved"]
    assert f"the evaluator on {socket.gethostname()} has ended: failed with status 1" in done.stderr
    assert "estimator launch: failed: the evaluator: failed with status 1; process " in done.stderr
    assert "again" not in done.stderr


def test_an_evaluator_that_is_lost_after_training_starts_again(tmp_path: Path) -> None:
    code = (
        "import json, os, signal, sys, time\n"
        "if json.loads(os.environ['TF_CONFIG'])['task']['type'] == 'evaluator':\n"
        "    time.sleep(1)\n"
        "    os.environ['ESTIMATOR_ATTEMPT'] == '0' and os.kill(os.getpid(), signal.SIGKILL)\n"
        "    print('evaluated')\n"
    )
    done = processes.launch("--processes", "1", "--evaluator", "--max-restarts", "1", *python(code))
    assert (done.returncode, done.stdout) == (0, "[1] evaluated\n"), done.stderr
    assert "starting the evaluator again (1 of 1)" in done.stderr


def test_a_process_that_is_alone_is_named_too(tmp_path: Path) -> None:
    done = processes.launch("--processes", "1", "--max-restarts", "1", *python(ENDS, str(tmp_path / "m"), "0=SIGKILL"))
    assert done.returncode == 0
    assert f"process 0 on {socket.gethostname()} has ended: ended by SIGKILL" in done.stderr


def test_what_each_process_is_told() -> None:
    job = JobSpec(command=("x",), processes=4, evaluator=True)
    told = [trainer_environment(job, index, "h:1", cards=8) for index in range(4)]
    assert [one["JAX_LOCAL_DEVICE_IDS"] for one in told] == ["0,1", "2,3", "4,5", "6,7"]
    assert [one["JAX_PROCESS_ID"] for one in told] == list("0123")
    tasks = [json.loads(one["TF_CONFIG"])["task"] for one in told]
    assert [(task["type"], task["index"]) for task in tasks] == [
        ("chief", 0),
        ("worker", 0),
        ("worker", 1),
        ("worker", 2),
    ]


def test_the_roles_it_tells_agree_with_what_the_core_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    from estimator_core.config import RunConfig

    job = JobSpec(command=("x",), processes=3, evaluator=True, devices=2)
    for name, value in trainer_environment(job, 2, "127.0.0.1:7000").items():
        monkeypatch.setenv(name, value)
    group = RunConfig().process_group
    assert group is not None
    assert (group.count, group.index, group.coordinator) == (3, 2, "127.0.0.1:7000")
    assert os.environ["XLA_FLAGS"].endswith("--xla_force_host_platform_device_count=2")


def test_the_secret_is_nowhere_to_be_read(tmp_path: Path) -> None:
    """The secret is neither in the command lines nor in the files of the job."""
    out = tmp_path / "secret"
    code = (
        f"import os, pathlib, sys, time\npathlib.Path(sys.argv[1]).write_text(os.environ['{SECRET}']); time.sleep(60)"
    )
    launcher = LocalLauncher(str(tmp_path / "jobs"))
    plan = launcher.plan(JobSpec(command=(sys.executable, "-c", code, str(out))))
    job_id = launcher.submit(plan)
    until(lambda: out.exists() and out.read_text())
    secret = out.read_text()
    assert len(secret) == 64
    written = [path.read_bytes() for path in (tmp_path / "jobs").rglob("*") if path.is_file()]
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes())
        except OSError:
            continue
    assert not [text for text in [*written, *lines, plan.text().encode()] if secret.encode() in text]
    assert (tmp_path / "jobs" / job_id).stat().st_mode & 0o077 == 0
    launcher.stop(job_id, 10)


def test_a_supervisor_that_is_gone_leaves_a_job_that_can_go_on(tmp_path: Path) -> None:
    launcher = LocalLauncher(str(tmp_path))
    job_id = launcher.submit(launcher.plan(JobSpec(command=(sys.executable, "-c", "input()"))))
    pid = json.loads((tmp_path / job_id / "state.json").read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: launcher.status(job_id).ended)
    assert launcher.status(job_id).phase == "resumable"


def test_a_process_that_has_the_id_of_a_gone_supervisor_is_left_alone(tmp_path: Path) -> None:
    launcher = LocalLauncher(str(tmp_path))
    job_id = launcher.submit(launcher.plan(JobSpec(command=(sys.executable, "-c", "input()"))))
    path = tmp_path / job_id / "state.json"
    state = json.loads(path.read_text())
    assert state["phase"] == "running"
    os.kill(state["pid"], signal.SIGKILL)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        path.write_text(json.dumps({**state, "pid": stranger.pid}))
        assert launcher.status(job_id).phase == "resumable"
        launcher.stop(job_id, 10)
        launcher.kill(job_id)
        assert stranger.poll() is None
        stranger.communicate(b"\n")
    assert stranger.returncode == 0


# Messages that need a launcher at work. All other messages report wrong usage.
AT_WORK = ("No such file or directory", "There is no local job 'nothing'")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--processes", "2"], "give the command to run after --"),
        (["--", "true"], "give the number of processes"),
        (["--processes", "0", "--", "true"], "processes must be at least 1, given: 0"),
        (["--processes", "3", "--hosts", "2", "--", "true"], "3 processes on 2 hosts are not possible"),
        (["--processes", "2", "--hosts", "2", "--", "true"], "the launcher 'local' uses only this machine"),
        (["--processes", "1", "--option", "queue", "--", "true"], "write --option NAME=VALUE"),
        (["--processes", "1", "--", "/no/such/program"], "No such file or directory"),
        (["--on", "slrum", "--processes", "1", "--", "true"], "slurm"),
        (["--status", "nothing"], "There is no local job 'nothing'"),
    ],
)
def test_refused_with_the_cure(words: list[str], says: str) -> None:
    done = processes.launch(*words)
    assert done.returncode == (1 if says in AT_WORK else 2)
    assert says in done.stderr


def test_a_dry_run_starts_nothing(tmp_path: Path) -> None:
    done = processes.launch("--processes", "2", "--dry-run", "--", "touch", str(tmp_path / "touched"))
    assert done.returncode == 0
    assert json.loads(done.stdout.partition("\n")[2].rpartition("\n# ")[0])["processes"] == 2
    assert not (tmp_path / "touched").exists()


def test_a_detached_job_outlives_its_command_and_is_asked_about(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, time\n"
        "print('here', flush=True)\n"
        "while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.05)"
    )
    job_id = processes.launch("--processes", "1", "--detach", *python(code, str(tmp_path / "go"))).stdout.strip()
    assert processes.launch("--status", job_id).stdout == "running\n"
    (tmp_path / "go").touch()
    assert processes.launch("--logs", job_id).stdout == "here\n"
    assert processes.launch("--status", job_id).stdout == "succeeded\n"


def test_a_name_is_of_letters_digits_and_hyphens() -> None:
    with pytest.raises(ArgumentError, match="name should have only"):
        JobSpec(command=("x",), name="../up")
