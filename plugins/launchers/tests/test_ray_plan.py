"""Tests of the program that `--on ray` runs, and of the messages between the processes of a Ray job, without Ray."""

import ast
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from estimator_core.errors import ArgumentError
from estimator_launchers import JobSpec, LaunchError, RayLauncher
from estimator_launchers.launcher_suite import LauncherSuite
from estimator_launchers.ray_board import Board
from plugins.launchers.tests.processes import SAVES, runs, shell


class TestRayPlans(LauncherSuite):
    reachable = False

    def make(self):
        return RayLauncher()


def script(**fields) -> str:
    job = JobSpec(**{"command": ("python", "train.py", "a 'b'"), "processes": 4, "hosts": 2, **fields})
    return RayLauncher().plan(job).files[0].text


def scaling(**fields) -> dict[str, object]:
    """Returns the arguments of ScalingConfig in the program."""
    calls = [node for node in ast.walk(ast.parse(script(**fields))) if isinstance(node, ast.Call)]
    (call,) = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "ScalingConfig"]
    return {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}


def test_the_job_stands_in_the_program():
    text = script(max_restarts=3, env={"A": "it's"}, evaluator=True)
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    (call,) = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "JobSpec"]
    told = JobSpec(**{word.arg or "": ast.literal_eval(word.value) for word in call.keywords})
    assert told == JobSpec(
        command=("python", "train.py", "a 'b'"),
        processes=4,
        hosts=2,
        max_restarts=3,
        env={"A": "it's"},
        evaluator=True,
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"num_workers": 4, "placement_strategy": "SPREAD", "resources_per_worker": {"CPU": 1}, "use_gpu": False}),
        ({"hosts": 4}, {"placement_strategy": "STRICT_SPREAD"}),
        ({"hosts": 1}, {"placement_strategy": "STRICT_PACK"}),
        ({"min_processes": 2, "hosts": 4}, {"num_workers": (2, 4), "placement_strategy": "SPREAD"}),
        ({"min_processes": 2, "hosts": 1}, {"placement_strategy": "PACK"}),
        ({"min_processes": 4}, {"num_workers": 4}),
        ({"options": {"gpus": "2"}}, {"use_gpu": True, "resources_per_worker": {"CPU": 1, "GPU": 2}}),
        ({"options": {"accelerator-type": "H100", "cpus": "8"}}, {"accelerator_type": "H100"}),
        ({"options": {"placement": "PACK"}}, {"placement_strategy": "PACK"}),
    ],
)
def test_what_ray_train_is_asked_for(fields: dict[str, object], expected: dict[str, object]):
    asked = scaling(**fields)
    assert {name: asked[name] for name in expected} == expected


def test_devices_are_virtual_where_no_cards_are_asked_for():
    assert "xla_force_host_platform_device_count=2" in script(devices=2)
    assert "XLA_FLAGS" not in script(devices=2, options={"gpus": "2"})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"options": {"gpus": "two"}}, "write a whole number"),
        ({"options": {"placement": "near"}}, "use one of PACK"),
        ({"time_limit_secs": 60.0}, "Leave --time-limit-secs out"),
        ({"min_processes": 5}, "from 1 to the 4 processes"),
    ],
)
def test_refused_with_the_cure(fields: dict[str, object], says: str):
    with pytest.raises(ArgumentError, match=says):
        script(**fields)


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_it_says_what_to_install():
    launcher = RayLauncher()
    with pytest.raises(LaunchError, match=r"pip install 'estimator-launchers\[ray\]'"):
        launcher.submit(launcher.plan(JobSpec(command=("x",))))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def board(grace_secs: float = 60.0) -> tuple[Board, Clock]:
    clock = Clock()
    return Board("hush", evaluator=3, grace_secs=grace_secs, clock=clock), clock


def test_the_first_failure_ends_the_others_by_force_after_the_grace():
    made, clock = board()
    attempt = made.begin(3)
    made.placed(attempt, 1, "n2")
    made.ended(attempt, 1, 75)
    assert made.taken()[1] == ["process 1 on n2 has ended: stopped early, can continue"]
    assert made.order(attempt, 0) == "go on"
    clock.now = 61.0
    assert made.order(attempt, 0) == "kill"
    assert made.order(attempt, 3) == "go on", "the evaluator stays for the next attempt"
    assert made.verdict(attempt) is None
    made.ended(attempt, 0, 128 + signal.SIGKILL)
    made.ended(attempt, 2, 0)
    assert made.verdict(attempt) == 75
    assert made.why() == "process 1: stopped early, can continue; process 0: ended by SIGKILL"


def test_a_process_of_an_attempt_that_is_given_up_is_killed():
    made, clock = board()
    first = made.begin(3)
    made.placed(first, 2, "n2")
    made.lost(2, "ActorDiedError: gone")
    clock.now = 7.0
    second = made.begin(2)
    assert (made.order(first, 0), made.order(second, 0)) == ("kill", "go on")
    made.ended(first, 0, 137)
    made.ended(second, 0, 0)
    made.ended(second, 1, 0)
    assert made.verdict(second) == 0, "what is left of the first attempt does not count"
    assert made.taken()[1] == [
        "process 2 on n2 is lost: ActorDiedError: gone",
        "starting again, 2 together (attempt 2), 7.0 s after the loss",
    ]
    assert made.taken()[1] == []


def test_a_stop_reaches_all_and_no_attempt_follows():
    made, clock = board()
    attempt = made.begin(3)
    assert made.may_go_on()
    made.stop()
    assert {made.order(attempt, index) for index in range(4)} == {"stop"}
    assert not made.may_go_on()
    clock.now = 61.0
    assert {made.order(attempt, index) for index in range(4)} == {"kill"}


def test_training_that_has_failed_ends_the_evaluator():
    made, clock = board()
    attempt = made.begin(1)
    made.ended(attempt, 0, 3)
    assert made.verdict(attempt) == 3
    made.close()
    assert (made.order(attempt, 3), made.order(attempt, 0)) == ("stop", "go on")
    clock.now = 61.0
    assert made.order(attempt, 3) == "kill"


def test_a_process_that_is_alone_is_named():
    made, _ = board()
    made.ended(made.begin(1), 0, 128 + signal.SIGKILL)
    assert made.taken()[1] == ["process 0 has ended: ended by SIGKILL"]


def test_a_lost_evaluator_is_named_and_starts_again_while_the_others_train():
    made = Board("hush", evaluator=3, grace_secs=60.0, max_restarts=1)
    attempt = made.begin(3)
    made.ended(0, 3, 128 + signal.SIGKILL)
    assert made.evaluator_again()
    assert made.taken()[1] == ["the evaluator has ended: ended by SIGKILL", "starting the evaluator again (1 of 1)"]
    made.ended(0, 3, 75)
    assert not made.evaluator_again()
    assert "--max-restarts 1 allows no more" in made.taken()[1][-1]
    assert {made.order(attempt, index) for index in range(4)} == {"go on"}
    assert not made.evaluator_failed()
    made.ended(0, 3, 0)
    assert not made.evaluator_again(), "it has ended well"


def test_an_evaluator_that_fails_ends_the_job():
    made, _ = board()
    attempt = made.begin(3)
    made.ended(0, 3, 170)
    assert made.taken()[1] == ["the evaluator has ended: failed with status 170"]
    assert (made.evaluator_again(), made.evaluator_failed(), made.may_go_on()) == (False, True, False)
    assert {made.order(attempt, index) for index in range(3)} == {"stop"}
    made.ended(attempt, 0, 75)
    assert made.why() == "the evaluator: failed with status 170; process 0: stopped early, can continue"


@pytest.mark.parametrize("asked", ["stop", "close"])
def test_an_evaluator_that_is_asked_to_end_neither_fails_the_job_nor_starts_again(asked: str):
    made = Board("hush", evaluator=3, grace_secs=60.0, max_restarts=1)
    made.begin(3)
    getattr(made, asked)()
    for status in (1, 143):
        made.ended(0, 3, status)
        assert not made.evaluator_again()
    assert not made.evaluator_failed()
    assert made.taken()[1] == []


def leashed(*command: str, grace_secs: float = 20.0) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "estimator_launchers.parent_death", str(grace_secs), *command]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_a_command_ends_with_the_process_that_holds_its_leash():
    """Without the leash, a process that Ray has abandoned would write at the same time as the next attempt."""
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(99)"
    with leashed(sys.executable, "-c", code) as leash:
        assert leash.stdout is not None
        assert leash.stdin is not None
        pid = int(leash.stdout.readline())
        leash.stdin.close()
        assert leash.wait(20) == 128 + signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_leash_passes_on_sigterm_and_the_status():
    code = (
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(75))\n"
        "print('ready', flush=True); time.sleep(99)"
    )
    with leashed(sys.executable, "-c", code) as leash:
        assert leash.stdout is not None
        assert leash.stdout.readline() == b"ready\n"
        leash.terminate()
        assert leash.wait(20) == 75
    with leashed("/no/such/program") as leash:
        assert leash.wait(20) == 127


def test_what_a_shell_has_started_ends_with_the_leash():
    """Otherwise it would train at the same time as the next attempt, and hold the pipe that its worker reads."""
    with leashed(*shell("$PROGRAM")) as leash:
        assert leash.stdout is not None
        assert leash.stdin is not None
        pid = int(leash.stdout.readline())
        assert runs(pid)
        leash.stdin.close()
        assert leash.wait(20) == 128 + signal.SIGKILL
        assert not runs(pid)
        assert leash.stdout.read() == b""


def test_what_a_shell_has_started_saves_before_the_leash_ends():
    """The shell ends at once after SIGTERM. Its program receives the signal once."""
    with leashed(*shell("$PROGRAM")) as leash:
        assert leash.stdout is not None
        pid = int(leash.stdout.readline())
        leash.terminate()
        assert leash.wait(20) == 128 + signal.SIGTERM
        assert not runs(pid)
        assert leash.stdout.read() == b"saved\n"


@pytest.mark.parametrize(
    ("code", "grace_secs", "says"),
    [
        (SAVES, 20.0, b"saved\n"),
        (SAVES.replace("time.sleep(0.5)", "time.sleep(99)"), 0.3, b""),
    ],
)
def test_what_a_command_leaves_running_ends_with_it(code: str, grace_secs: float, says: bytes, tmp_path: Path):
    ready = tmp_path / "ready"
    script = f"$PROGRAM {ready} & while [ ! -e {ready} ]; do sleep 0.1; done; exit 3"
    with leashed(*shell(script, code), grace_secs=grace_secs) as leash:
        assert leash.stdout is not None
        pid = int(leash.stdout.readline())
        assert leash.wait(20) == 3
        assert not runs(pid)
        assert leash.stdout.read() == says
