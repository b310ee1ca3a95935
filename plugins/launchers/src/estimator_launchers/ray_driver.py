"""The driver of a Ray job: passes the processes to Ray Train, and records their progress in the folder of the job."""

# Ray is not installed where types are checked, so its classes are unknown there.
# pyright: reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray  # pyright: ignore[reportMissingImports]
import ray.train  # pyright: ignore[reportMissingImports]
from ray.train import FailureConfig, RunConfig, ScalingConfig  # pyright: ignore[reportMissingImports]
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer  # pyright: ignore[reportMissingImports]
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # pyright: ignore[reportMissingImports]

from estimator_launchers.contract import JobSpec, JobStatus
from estimator_launchers.environment import SECRET, new_secret
from estimator_launchers.jobs import JobFolder
from estimator_launchers.outcome import RESUMABLE, can_go_on
from estimator_launchers.ray_address import reach
from estimator_launchers.ray_board import Board
from estimator_launchers.ray_worker import Ask, CanGoOnError, asking, evaluate_process, train_process

_POLL_SECS = 0.2
_WAITING_SECS = 30.0
_REACH_SECS = 10.0


class Losses(ray.train.UserCallback):
    """Reports to the board which workers Ray has lost. It runs in the controller of Ray Train."""

    def __init__(self, board: Any) -> None:
        self._board = board

    def after_exception(self, run_context: Any, worker_exceptions: Mapping[int, BaseException]) -> None:
        """Reports the lost workers.

        Ray Train calls it after workers have failed. Workers that end an attempt are not lost.
        """
        for index, error in sorted(worker_exceptions.items()):
            kind, text = type(error).__name__, str(error)
            if CanGoOnError.__name__ not in kind + text:
                first = next((line.strip() for line in text.splitlines() if line.strip()), "")
                ray.get(self._board.lost.remote(index, f"{kind}: {first[:200]}"))


def drive(job: JobSpec, *, cluster: Mapping[str, Any], scaling: ScalingConfig, evaluator: Mapping[str, Any]) -> None:
    """Runs a job to its end, in the folder that the command line names, and ends this process with its status.

    Args:
        job: the job.
        cluster: arguments of `ray.init`.
        scaling: the number of workers, and the resources of each.
        evaluator: the resources of the evaluator, as options of a task.
    """
    folder = JobFolder(Path(sys.argv[1] if len(sys.argv) > 1 else ".").absolute())
    parent = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    try:
        reach(cluster.get("address") or os.environ.get("RAY_ADDRESS", ""), _REACH_SECS)
        ray.init(**cluster, log_to_driver=False, ignore_reinit_error=True)
    except Exception as error:  # the job does not exist: without a state file, its submission reports the error
        raise SystemExit(f"Ray cannot connect this driver: {_in_words(error)}") from error
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):  # after `ray.init`, which sets handlers of its own
        signal.signal(number, lambda *_: asked.set())
    folder.write(JobStatus(phase="pending"))
    errors: list[Exception] = []
    try:
        ask, training, beside = _started(job, folder, scaling, evaluator, errors)
    except Exception as error:  # without a final state it would be retried without end
        folder.write(JobStatus(phase="failed", why=f"the job cannot be submitted to Ray: {_in_words(error)}"))
        raise
    writer = _Writer(folder, ask)
    try:
        while training.is_alive():
            writer.look(asked=asked.is_set() or bool(parent and os.getppid() != parent))
            time.sleep(_POLL_SECS)
        status = _ended(ask, errors)
        if beside is not None:
            if status.phase != "succeeded":
                ask("close")
            while not ray.wait([beside], timeout=_POLL_SECS)[0]:
                writer.look(asked=asked.is_set())
            status = _with_evaluator(status, beside, ask)
        writer.look(asked=False)
    except Exception as error:  # the board or the whole cluster is lost, and the processes end with this driver
        traceback.print_exc()
        why = f"Ray has lost the job: {_in_words(error)}"
        os._exit(folder.write(JobStatus(phase="resumable", restarts=writer.restarts, why=why)).exit_status)
    ray.shutdown()
    os._exit(folder.write(status).exit_status)  # a thread of Ray may be blocked


def _started(
    job: JobSpec, folder: JobFolder, scaling: ScalingConfig, evaluator: Mapping[str, Any], errors: list[Exception]
) -> tuple[Ask, threading.Thread, Any]:
    """Passes the job to Ray. Returns the board, the thread of Ray Train, and the evaluator or None."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    secret = os.environ.pop(SECRET, "") or new_secret()
    board = (
        ray.remote(Board)
        .options(num_cpus=0, scheduling_strategy=here)
        .remote(secret, evaluator=job.processes, grace_secs=job.grace_secs, max_restarts=job.max_restarts)
    )
    told = {"job": job.to_json(), "board": board, "folder": os.getcwd(), "run_id": folder.path.name}
    failures = FailureConfig(max_failures=job.max_restarts)
    trainer = DataParallelTrainer(
        train_process,
        train_loop_config=told,
        scaling_config=scaling,
        run_config=RunConfig(
            name=folder.path.name,
            storage_path=str(folder.path / "ray"),
            failure_config=failures,
            callbacks=[Losses(board)],
        ),
    )
    beside: Any = None
    if job.evaluator:
        options = {"num_cpus": 1, **evaluator, "max_retries": job.max_restarts}
        beside = ray.remote(evaluate_process).options(**options).remote(told)
    training = threading.Thread(target=_fitted, args=(trainer, errors), daemon=True)
    training.start()
    return asking(board), training, beside


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


class _Writer:
    """Writes the lines and events of the board to the folder, and passes on the request to stop."""

    def __init__(self, folder: JobFolder, ask: Ask) -> None:
        self._folder, self._ask = folder, ask
        self._attempts, self._stopping = 0, False
        self._began: float | None = time.monotonic()

    @property
    def restarts(self) -> int:
        """The number of times that all processes were restarted."""
        return max(0, self._attempts - 1)

    def look(self, *, asked: bool) -> None:
        """Writes what is new since the last call."""
        if asked and not self._stopping:
            self._stopping = True
            self._ask("stop")
        lines, events = self._ask("taken")
        for event in events:
            self._folder.say(event)
        for index, line in lines:
            with (self._folder.path / f"{index}.log").open("a") as log:
                log.write(line + "\n")
        attempts = self._ask("attempts")
        if attempts != self._attempts:
            self._attempts = attempts
            self._folder.write(JobStatus(phase="running", restarts=attempts - 1))
        elif not attempts and self._began is not None and time.monotonic() - self._began > _WAITING_SECS:
            self._began = None
            self._folder.say("waiting for Ray to place the processes; `ray status` shows the free resources")


def _fitted(trainer: DataParallelTrainer, errors: list[Exception]) -> None:
    try:
        trainer.fit()
    except Exception as error:
        errors.append(error)


def _ended(ask: Ask, errors: list[Exception]) -> JobStatus:
    attempts = ask("attempts")
    verdict = ask("verdict", attempts - 1) if attempts else None
    restarts = max(0, attempts - 1)
    if verdict == 0 and not errors:
        return JobStatus(phase="succeeded", restarts=restarts)
    if verdict not in (0, RESUMABLE, None):
        return JobStatus(phase="failed", restarts=restarts, why=ask("why"))
    first = str(errors[0]).strip().splitlines()[0] if errors else ""
    if attempts and (verdict == RESUMABLE or isinstance(getattr(errors[0], "worker_failures", None), dict)):
        return JobStatus(phase="resumable", restarts=restarts, why=ask("why") or first)
    return JobStatus(phase="failed", restarts=restarts, why=first)


def _with_evaluator(status: JobStatus, beside: Any, ask: Ask) -> JobStatus:
    try:
        code = ray.get(beside)
    except ray.exceptions.RayError as error:
        first = str(error).strip().splitlines()[0]
        code, why = RESUMABLE, f"the evaluator is lost: {first}"
    else:
        why = ask("why")
    if ask("evaluator_failed"):
        return JobStatus(phase="failed", restarts=status.restarts, why=why)
    if status.phase != "succeeded" or code == 0:
        return status
    phase = "resumable" if can_go_on(code) else "failed"
    return JobStatus(phase=phase, restarts=status.restarts, why=why)
