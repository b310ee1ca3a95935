"""A sweep whose workers are the processes of a job, as docs/sweeps.md describes, also with a worker that is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from plugins.launchers.tests.processes import until

CODE = """
import time
import jax.numpy as jnp, numpy as np, optax
import estimator_core as ec

def model_fn(features, labels, mode, params):
    y = features["x"] * ec.get_variable("slope", ())
    loss = jnp.mean((y - labels) ** 2)
    train_op = optax.inject_hyperparams(optax.sgd)(learning_rate=params.rate)
    return ec.EstimatorSpec(mode, loss=loss, train_op=train_op)

class Slow:
    def __init__(self, made, seconds):
        self.made, self.seconds = made, seconds
    def __iter__(self):
        return self
    def __next__(self):
        time.sleep(self.seconds)
        return next(self.made)
    def get_state(self):
        return self.made.get_state()
    def set_state(self, state):
        self.made.set_state(state)

def batches(seconds, epochs=None):
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    made = ec.inputs.numpy_input_fn({"x": x}, 3 * x, batch_size=8, num_epochs=epochs, shuffle=False)
    return lambda: Slow(iter(made()), seconds)
"""
FILE = """
model = { function = "code_of_job.py:model_fn" }
inputs.train = { call = "code_of_job.py:batches", args = { seconds = 0.1 } }
inputs.eval = { call = "code_of_job.py:batches", args = { seconds = 0, epochs = 1 } }
train.max_steps = 20
hparams.rate = 0.1
run_config = { tf_random_seed = 1, save_checkpoints_steps = 5, default_hooks = false }

[sweep]
trials = 8
workers = 2
every_steps = 10
objectives = [{ metric = "loss", mode = "min" }]
sampler = { name = "TPESampler", args = { n_startup_trials = 2 } }
space = { "hparams.rate" = { low = 0.01, high = 0.5, log = true } }
"""


def write(folder: Path) -> Path:
    """Writes the sweep, and returns its file."""
    (folder / "code_of_job.py").write_text(CODE)
    path = folder / "job.toml"
    path.write_text(FILE)
    return path


def words(file: Path, folder: Path) -> Sequence[str]:
    """Returns the command of each process."""
    estimator = Path(sys.executable).with_name("estimator")
    return (sys.executable, str(estimator), "sweep", str(file), "--dir", str(folder), "--worker")


def trials(file: Path, folder: Path) -> list[Any]:
    """Returns the results of a sweep without times, as `--show` reads them."""
    from estimator_runs import open_search

    found = open_search(file, folder).shelf.study().get_trials(deepcopy=False)
    return [(one.number, one.state.name, one.values, one.params, one.intermediate_values) for one in found]


def expected(file: Path, folder: Path) -> list[Any]:
    """Returns the trials of two undisturbed workers of this machine."""
    from estimator_runs import open_search, run_search

    run_search(open_search(file, folder))
    found = trials(file, folder)
    assert [state for _, state, *_ in found] == ["COMPLETE"] * 8
    return found


def workers(folder: Path) -> list[int]:
    """Returns the ids of the processes that work on a sweep, without the shells and supervisors above them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            said = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "--worker" in said and str(folder) in said and said[1].endswith("/estimator"):
            found.append(int(path.parent.name))
    return sorted(found)


def kill_one(folder: Path, after: int, run: Callable[[], bool] = lambda: True) -> list[int]:
    """Kills a worker after some trials have ended, while `run` returns true. Returns the workers that existed."""

    def due() -> bool:
        assert run(), "the job has ended before a worker was killed"
        return len(list(folder.glob("trials/*/outcome.json"))) >= after and len(workers(folder)) == 2

    until(due, 300)
    time.sleep(0.5)  # in the middle of a trial
    found = workers(folder)
    os.kill(found[-1], signal.SIGKILL)
    return found


def show(file: Path, folder: Path) -> str:
    """Returns the output of `estimator sweep --show`."""
    command = [*words(file, folder)[:-1], "--show"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
