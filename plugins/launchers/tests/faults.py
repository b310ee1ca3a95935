"""A small run of two processes, one of which is killed, freezes or fails: the time of its report, and the result.

Every launcher runs the same program. A fault is `HOW@WHERE`. `HOW` is `kill`, `freeze`, `raise` or `actor`. `WHERE` is
a step of the training, the `start` of the program, its `evaluate` or its `predict`. Each attempt has the next fault.
"""

import contextlib
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from estimator_launchers import JobSpec, JobStatus, Launcher
from estimator_launchers.launching import submit_and_follow

#: The seconds after a fault within which a line must name the process.
NAMED_SECS = 30.0
STEPS = 20
#: The arguments are a folder, the process that has the faults, and the faults.
PROGRAM = """
import os, pathlib, signal, sys, time
OUT, WHO, FAULTS = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]

def strike(how):
    (OUT / "struck").write_text(repr(time.time()))
    if how == "raise":
        raise RuntimeError("the input of this process broke")
    pid = os.getpid()
    if how == "actor":  # the worker of Ray, above the leash of this process
        stat = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
    os.kill(pid, signal.SIGSTOP if how == "freeze" else signal.SIGKILL)
    time.sleep(60)

me = os.environ.get("JAX_PROCESS_ID") or os.environ.get("SLURM_PROCID", "0")
attempt = 0
if me == WHO:
    attempt = len(list(OUT.glob("attempt-*")))
    (OUT / f"attempt-{attempt}").touch()
how, _, where = (FAULTS[attempt] if me == WHO and attempt < len(FAULTS) else "").partition("@")
if where == "start":
    strike(how)

import jax.numpy as jnp, numpy as np, optax
import estimator_core as ec

def model_fn(features, labels, mode):
    predicted = features["x"] @ ec.get_variable("w", (2,))
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": predicted})
    return ec.EstimatorSpec(mode, loss=jnp.mean((predicted - labels) ** 2), train_op=optax.sgd(1e-2))

class Fault(ec.Hook):
    def __init__(self, phase):
        self.phase, self.seen = phase, 0
    def next_step(self, step):
        return step + 1
    def after_step(self, run, step, out):
        self.seen += 1
        if self.phase == "train":
            (OUT / "step").write_text(str(step))
            if "slow" in FAULTS:
                time.sleep(0.1)
        if where == (str(step) if self.phase == "train" else self.phase) and self.seen > 1:
            strike(how)

x = np.arange(128, dtype=np.float32).reshape(64, 2) / 128
def data(labels, **told):
    return ec.inputs.numpy_input_fn({"x": x}, labels, batch_size=4, **told)
config = ec.RunConfig(model_dir=str(OUT / "run"), save_checkpoints_steps=10, tf_random_seed=1, default_hooks=False)
estimator = ec.Estimator(model_fn, config=config)
steps = int(os.environ.get("STEPS", "20"))
estimator.train(data(x.sum(1), num_epochs=None, shuffle=True, seed=1), max_steps=steps, hooks=[Fault("train")])
loss = estimator.evaluate(data(x.sum(1), shuffle=False), hooks=[Fault("evaluate")])["loss"]
rows = list(estimator.predict(data(None, shuffle=False), hooks=[Fault("predict")]))
group = estimator.config.process_group
told = [*estimator.get_variable_value("w").tolist(), float(loss), *(float(row["y"]) for row in rows)]
print("done", group.count if group else 1, group.index if group else 0, ",".join(one.hex() for one in told), flush=True)
"""


class Heard:
    """Records the lines of a job's processes and of its launcher, with their times."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, str]] = []

    def write(self, text: str) -> None:
        """Records a line of a process, or a line that the launcher writes to standard error."""
        self.lines.extend((time.time(), line) for line in text.splitlines())

    def flush(self) -> None:
        """Does nothing, because lines are not buffered."""

    @property
    def text(self) -> str:
        """All lines, in order."""
        return "\n".join(line for _, line in self.lines)

    def done(self) -> list[str]:
        """Returns the last line of each process: the number of processes, its index, and all numbers of the run."""
        return sorted(line for _, line in self.lines if "] done " in line)

    def first(self, pattern: str, since: float = 0.0) -> tuple[float, str]:
        """Returns the time of the first line with a pattern, and the line."""
        for when, line in self.lines:
            if when >= since and re.search(pattern, line):
                return when, line
        raise AssertionError(f"nobody says {pattern!r}:\n{self.text}")


def followed(
    launcher: Launcher, out: Path, faults: Sequence[str] = (), who: int = 1, **fields: Any
) -> tuple[JobStatus, Heard]:
    """Runs the program to its end, and returns its status and lines."""
    out.mkdir(exist_ok=True)
    words = {"processes": 2, "grace_secs": 30.0, **fields}
    words["env"] = {"JAX_PLATFORMS": "cpu", **words.get("env", {})}
    job = JobSpec(command=(sys.executable, "-c", PROGRAM, str(out), str(who), *faults), **words)
    heard = Heard()
    with contextlib.redirect_stderr(heard):  # type: ignore[type-var]
        status = submit_and_follow(launcher, launcher.plan(job), write=heard.write)
    return status, heard


#: The report of the launcher or of process 0 about process 1: its index, its host, and how it was lost.
KILLED = r"process 1 on \S+ has ended: ended by SIGKILL"
FAILED = r"process 1 on \S+ has ended: failed with status 1"
TOLD = r"\[0\] .*Process 1 of 2 \(\S+, pid \d+\) is lost: it failed: RuntimeError: the input of this process broke"
FROZEN = (
    r"\[0\] .*Process 1 of 2 \(\S+, pid \d+\) is lost: nothing was heard from it for 20 s: killed, frozen or cut off"
)
NAMES = {"kill": (KILLED,), "freeze": (FROZEN,), "raise": (FAILED, TOLD)}


def survives(
    launcher: Launcher, out: Path, expected: Sequence[str], fault: str, names: Sequence[str] = (), **fields: Any
) -> None:
    """Checks one fault: it is reported in time, and the job ends or continues with the numbers of an undisturbed run.

    Args:
        launcher: the launcher that runs the job.
        out: a folder for the job.
        expected: the last lines of the processes of an undisturbed run.
        fault: the fault, in the form that the program takes.
        names: patterns of lines that report it. By default, those of its kind.
        fields: further fields of the job.
    """
    how = fault.partition("@")[0]
    began = time.time()
    status, heard = followed(launcher, out, [fault], max_restarts=1, **fields)
    struck = float((out / "struck").read_text())
    said = [heard.first(pattern) for pattern in names or NAMES[how]]
    for when, line in said:
        print(f"{launcher.name} {fault}: {when - struck:.1f} s after it: {line[:150]}", file=sys.__stdout__)
    assert max(when for when, _ in said) - struck < NAMED_SECS, heard.text
    if how == "raise":
        assert (status.phase, status.restarts, status.exit_status) == ("failed", 0, 1), heard.text
        status, heard = followed(launcher, out, [fault], **fields)
        assert (status.phase, status.restarts) == ("succeeded", 0), heard.text
    else:
        assert (status.phase, status.restarts) == ("succeeded", 1), heard.text
        _, line = heard.first(r"starting .*, [\d.]+ s after the loss")
        print(f"{launcher.name} {fault}: {line}; in all {time.time() - began:.1f} s", file=sys.__stdout__)
    assert heard.done() == list(expected), heard.text


def survives_two(launcher: Launcher, out: Path, expected: Sequence[str], **fields: Any) -> None:
    """Kills process 1 in training, and again in the restart before it has met the others."""
    status, heard = followed(launcher, out, ["kill@12", "kill@start"], max_restarts=2, **fields)
    assert (status.phase, status.restarts) == ("succeeded", 2), f"{status}\n{heard.text}"
    struck = float((out / "struck").read_text())
    when, line = heard.first(KILLED, since=struck)
    print(f"{launcher.name} twice: {when - struck:.1f} s after the second: {line}", file=sys.__stdout__)
    assert when - struck < NAMED_SECS, heard.text
    assert len(re.findall(r"starting .*, [\d.]+ s after the loss", heard.text)) == 2, heard.text
    assert heard.done() == list(expected), heard.text
