"""Early stopping in two real processes: the first process decides, and both stop at the same step."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import json, sys
import jax
address, index, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
jax.distributed.initialize(address, num_processes=2, process_id=index)
from types import SimpleNamespace
import estimator_hooks as eh
from estimator_core.summaries import append_eval_metrics
from estimator_core.testing import drive
from estimator_hooks.early_stopping.agreement import number_of_first_process

eval_dir = f"{folder}/{index}"  # the files of the first process are never seen by the second

class Evaluates(eh.Hook):
    def next_step(self, step):
        return step + 10

    def after_step(self, run, step, out):
        if index == 0:
            append_eval_metrics(eval_dir, step, {"loss": abs(step - 30.0)}, None)

estimator = SimpleNamespace(eval_dir=lambda name=None: eval_dir)
stop = eh.stop_if_no_decrease_hook(estimator, "loss", 20, run_every_steps=7)
first = drive([Evaluates(), stop], steps=200)
asked = []
should_stop = lambda: asked.append(1) or len(asked) == 4 + index
predicate = eh.make_early_stopping_hook(estimator, should_stop, run_every_steps=5)
second = drive([predicate], steps=200)
refusal = None
try:
    drive([eh.stop_if_lower_hook(estimator, "loss", 0.5, run_every_secs=1.0)], steps=2)
except ValueError as error:
    refusal = str(error)
numbers = [number_of_first_process(40 + index), number_of_first_process(None if index == 0 else 3)]
print(json.dumps([first.step, first.stop_reason, second.step, numbers, refusal]))
"""


def free_address() -> str:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    address, folder = free_address(), tmp_path_factory.mktemp("evaluations")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, address, str(index), str(folder)],
            cwd=Path(__file__).parents[4],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    try:
        ended = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], ended
    return [json.loads(output.splitlines()[-1]) for output, _ in ended]


def test_both_stop_at_the_step_that_the_first_one_decides(results: list[Any]):
    (step, reason, *_), (other_step, other_reason, *_) = results
    assert step == other_step == 50  # checked at 1, 8, ..., 50; the evaluation of 50 is 20 steps after the best one
    assert reason == "early stopping: no lower loss than 0 of step 30 up to step 50"
    assert other_reason == "early stopping: decided by the first process"


def test_the_predicate_of_the_first_process_decides(results: list[Any]):
    assert [result[2] for result in results] == [16, 16]


def test_numbers_are_those_of_the_first_process(results: list[Any]):
    assert [result[3] for result in results] == [[40, None], [40, None]]


def test_a_clock_is_refused(results: list[Any]):
    for result in results:
        assert "run_every_secs should not be set when several processes train" in result[4]
