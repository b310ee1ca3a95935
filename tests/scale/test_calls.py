"""Tests of processes with different calls: they end within seconds, and the error names both."""

import json
import re
import time
from pathlib import Path

import pytest
from scale_runs import launch

pytestmark = pytest.mark.plugins  # estimator-cluster


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("verbs", r"process 0 calls predict\(.*\); process 1 calls evaluate\(.*steps=1"),
        pytest.param(
            "steps", r"process 0 calls train\(steps=2\); process 1 calls train\(steps=3\)", marks=pytest.mark.slow
        ),
        pytest.param(
            "hooks", r"calls train\(hooks=\[\]\); .*hooks=\['estimator_core.hooks.Hook'\]", marks=pytest.mark.slow
        ),
    ],
)
def test_both_calls_are_named_in_both_processes(tmp_path: Path, what: str, message: str) -> None:
    began = time.monotonic()
    done = launch("calls_worker.py", 2, None, arguments=[str(tmp_path), what])
    for process in (0, 1):
        assert re.search(rf"\[{process}\] .*ArgumentError: Processes 0 and 1 of 2 differ: .*{message}", done.stdout)
    assert done.returncode == 1
    assert not list(tmp_path.glob("done.*"))
    assert time.monotonic() - began < 120  # most of it is the start, without waiting for a timeout


@pytest.mark.parametrize("what", ["rates", pytest.param("accumulation", marks=pytest.mark.slow)])
def test_programs_that_differ_do_not_run(tmp_path: Path, what: str) -> None:
    """Two rates of learning trained two models, of which the first was saved. Other differences waited forever."""
    done = launch("calls_worker.py", 2, None, arguments=[str(tmp_path), what], timeout=120)
    for process in (0, 1):
        assert re.search(
            rf"\[{process}\] .*DifferingProgramsError: The training programs of processes \[1\] differ from that",
            done.stdout,
        ), done.stdout
    assert done.returncode == 1
    assert not Path(tmp_path, "checkpoints", "2").exists()
    assert not list(tmp_path.glob("done.*"))


@pytest.mark.slow
def test_a_process_that_has_ended_is_named_by_who_calls(tmp_path: Path) -> None:
    done = launch("calls_worker.py", 2, None, arguments=[str(tmp_path), "ended"])
    assert re.search(
        r"\[0\] .*Process 1 of 2 .* is lost: it has ended, while others wait for it at 'call'", done.stdout
    )
    assert [path.name for path in tmp_path.glob("done.*")] == ["done.1"]


@pytest.mark.slow
def test_a_process_that_takes_few_predictions_and_ends_is_named(tmp_path: Path) -> None:
    began = time.monotonic()
    done = launch("calls_worker.py", 2, None, arguments=[str(tmp_path), "predictions"])
    assert re.search(
        r"\[0\] .*ProcessLostError: Process 1 of 2 .* is lost: it has (ended, while others wait|stopped taking)",
        done.stdout,
    )
    assert done.returncode == 75
    assert time.monotonic() - began < 60
    assert [path.name for path in tmp_path.glob("done.*")] == ["done.1"]


def test_a_process_that_takes_few_predictions_and_calls_again_is_named(tmp_path: Path) -> None:
    """The two waited for each other without an end: one in its devices, the other at its next call."""
    done = launch("calls_worker.py", 2, None, arguments=[str(tmp_path), "predictions then evaluate"], timeout=120)
    for process in (0, 1):
        assert re.search(
            rf"\[{process}\] .*Process 1 of 2 .* is lost: it has stopped taking predictions, and process 0 waits",
            done.stdout,
        ), done.stdout
    assert done.returncode == 75
    assert not list(tmp_path.glob("done.*"))


@pytest.mark.parametrize("what", ["predictions in a hook", "predictions in a hook, both"])
def test_a_process_that_takes_few_predictions_in_a_hook_is_named(tmp_path: Path, what: str) -> None:
    """No further call follows, in which the processes would compare how many they have taken. They waited forever."""
    done = launch("calls_worker.py", 2, None, arguments=[str(tmp_path), what], timeout=120)
    assert re.search(
        r"\[0\] .*Process 1 of 2 .* is lost: it has stopped taking predictions, and process 0 waits", done.stdout
    ), done.stdout
    assert done.returncode == 75
    assert not list(tmp_path.glob("done.*"))


@pytest.mark.slow
def test_processes_that_stop_at_different_predictions_end_before_their_batches_mix(tmp_path: Path) -> None:
    done = launch("calls_worker.py", 2, None, arguments=[str(tmp_path), "predictions then evaluate both"], timeout=120)
    for process in (0, 1):
        assert re.search(
            rf"\[{process}\] .*(ArgumentError: Process 1 of 2 stopped taking predictions before others did: before "
            r"this evaluate, the processes have drawn 10, 9 batches|it has stopped taking predictions)",
            done.stdout,
        ), done.stdout
    assert not list(tmp_path.glob("done.*"))


def test_what_the_first_process_alone_asks_for_stops_nobody(tmp_path: Path) -> None:
    """Its hooks declare when they need control and what they read. All processes pause there and run one program."""
    out = tmp_path / "out"
    done = launch("chief_worker.py", 2, None, arguments=[str(out)], timeout=90)
    assert done.returncode == 0, done.stdout
    first, second = (json.loads(Path(f"{out}.{process}.json").read_text()) for process in (0, 1))
    whole = [32, 4]  # of both processes
    looked = [step for step, shape in first["trained"] if shape == whole]
    assert {3, 5, 6, 9} <= set(looked)
    assert max(looked) == 9
    assert sum(count for count, shape in first["trained"] if shape == [count]) == 9
    assert [one for one in first["evaluated"] if one[1] == whole] == [[1, whole], [2, whole]]
    assert sum(count for count, shape in first["evaluated"] if shape == [count]) == 2
    assert (second["trained"], second["evaluated"]) == ([], [])
    for name, value in {"reason": "the chief has enough", "step": 9, "loss": first["loss"]}.items():
        assert first[name] == second[name] == value


def test_a_stop_that_one_process_requests_stops_all_in_every_verb(tmp_path: Path) -> None:
    """The stop comes at a step with a save, after it, in an evaluation, in predictions, and when one process follows a
    value.
    """
    out = tmp_path / "out"
    done = launch("hooks_worker.py", 2, None, arguments=[str(out), "stops"], timeout=90)
    assert done.returncode == 0, done.stdout
    first, second = (json.loads(Path(f"{out}.{process}.json").read_text()) for process in (0, 1))
    assert first == second
    assert [first[0], *first[2:4]] == ["process 1 has enough", 64, "a value"]
    assert 5 < int(first[4]) < 25
    assert first[5].startswith("Listens.after_save asked for it at step ")
    assert 64 < first[6] < 16000


def test_a_process_that_shows_no_progress_does_as_the_others(tmp_path: Path) -> None:
    done = launch("hooks_worker.py", 2, None, arguments=[str(tmp_path / "out"), "quiet"], timeout=90)
    assert done.returncode == 0, done.stdout
    assert {"[0] 20", "[1] 20"} <= set(done.stdout.splitlines())
    assert "[0] train: 20/20" in done.stdout
    assert "[1] train:" not in done.stdout


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("steps", r"process 0: hook Steps from .* at step 2; process 1: hook Steps from .* at step 3"),
        ("assigns", r"At step 3 hooks have replaced variables only in processes \[0\]"),
    ],
)
def test_hooks_that_differ_between_processes_are_named_in_both(tmp_path: Path, what: str, message: str) -> None:
    done = launch("hooks_worker.py", 2, None, arguments=[str(tmp_path / "out"), what], timeout=90)
    for process in (0, 1):
        assert re.search(rf"\[{process}\] .*DifferingHooksError: .*{message}", done.stdout), done.stdout
    assert "ProcessLostError" not in done.stdout
    assert done.returncode == 1
