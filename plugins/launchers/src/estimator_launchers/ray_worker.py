"""A worker of Ray Train: it runs one process of the job, and passes on how it ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Protocol

import ray  # pyright: ignore[reportMissingImports]
import ray.train  # pyright: ignore[reportMissingImports]
import ray.train.collective  # pyright: ignore[reportMissingImports]

from estimator_core.errors import EstimatorError
from estimator_launchers.contract import JobSpec
from estimator_launchers.environment import SECRET, evaluator_environment, trainer_environment
from estimator_launchers.outcome import RESUMABLE
from estimator_launchers.ray_board import Order
from estimator_launchers.supervise import free_port

_ASK_SECS = 0.5
_READ_SECS = 10.0


class CanGoOnError(EstimatorError):
    """An attempt has ended, and the run can continue. All workers raise it, so that Ray Train restarts them."""


class Ask(Protocol):
    """Calls a method of the board, which is an actor, and waits for its answer."""

    def __call__(self, method: str, /, *arguments: Any) -> Any:
        """Returns the answer."""
        ...


def asking(board: Any) -> Ask:
    """Returns a function that calls the methods of an actor by name."""

    def ask(method: str, /, *arguments: Any) -> Any:
        return ray.get(getattr(board, method).remote(*arguments))

    return ask


def train_process(told: Mapping[str, Any]) -> None:
    """Runs one process of an attempt, as the training function of Ray Train.

    Args:
        told: "job" as JSON, the actor "board", the working "folder", and "run_id".

    Raises:
        CanGoOnError: the attempt can be repeated.
    """
    context = ray.train.get_context()
    index, count = context.get_world_rank(), context.get_world_size()
    ask = asking(told["board"])
    begun: dict[str, Any] | None = None
    if index == 0:
        begun = {"attempt": ask("begin", count), "address": _address()}
    begun = ray.train.collective.broadcast_from_rank_zero(begun)
    assert begun is not None
    job, attempt = JobSpec.from_json(told["job"]).with_processes(count), begun["attempt"]
    env = trainer_environment(job, index, begun["address"]) | {"ESTIMATOR_ATTEMPT": str(attempt)}
    ask("placed", attempt, index, socket.gethostname())
    status = _run(job, told, ask, index, attempt, env)
    ask("ended", attempt, index, status)
    while (verdict := ask("verdict", attempt)) is None:
        time.sleep(_ASK_SECS)
    if verdict == RESUMABLE and ask("may_go_on"):
        raise CanGoOnError(f"attempt {attempt + 1} has ended early: {ask('why')}")


def evaluate_process(told: Mapping[str, Any]) -> int:
    """Runs the evaluator during all attempts, and restarts it if it is lost. Returns its last exit status."""
    job = JobSpec.from_json(told["job"])
    ask = asking(told["board"])
    while True:
        status = _run(job, told, ask, job.processes, 0, evaluator_environment(job, cards=1))
        ask("ended", 0, job.processes, status)
        if not ask("evaluator_again"):
            return status


def _address() -> str:
    host = ray.util.get_node_ip_address()
    return f"{host}:{free_port('')}"


def _run(job: JobSpec, told: Mapping[str, Any], ask: Ask, index: int, attempt: int, env: Mapping[str, str]) -> int:
    run = {"ESTIMATOR_RUN_ID": told["run_id"], "PYTHONUNBUFFERED": "1", SECRET: ask("secret")}
    folder = told["folder"]
    child = subprocess.Popen(
        [sys.executable, "-m", "estimator_launchers.parent_death", str(job.grace_secs), *job.command],
        env={**os.environ, **job.env, **run, **env},
        # The folder of the submission, if this node has it. Otherwise the folder that Ray has prepared.
        cwd=folder if Path(folder).is_dir() else None,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ray may kill the group of its worker, but only the leash may end the command
    )
    assert child.stdout is not None
    assert child.stdin is not None
    passed_on = (child.stdout, lambda lines: ask("write", index, lines))
    reader = threading.Thread(target=_pass_on, args=passed_on, daemon=True)
    reader.start()
    status = _watched(child, lambda: ask("order", attempt, index))
    reader.join(timeout=_READ_SECS)  # a process outside of the session may keep the pipe open
    return status


def _watched(child: subprocess.Popen[bytes], order: Callable[[], Order]) -> int:
    """Executes the orders until the process ends. Returns its status."""
    asked = False
    assert child.stdin is not None
    while child.poll() is None:
        now = order()
        if now == "kill":
            child.stdin.close()  # the leash then kills the command
            return child.wait()
        if now == "stop" and not asked:
            asked = True
            child.terminate()
        time.sleep(_ASK_SECS)
    return child.returncode


def _pass_on(stream: IO[bytes], write: Callable[[list[str]], Any]) -> None:
    """Passes on the lines of a process, as many at a time as are available."""
    rest = b""
    while data := os.read(stream.fileno(), 1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            write([line.decode(errors="replace") for line in lines])
    if rest:
        write([rest.decode(errors="replace")])
