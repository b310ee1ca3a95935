"""Runs the old program in a separate process with its own interpreter."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from estimator_core.errors import ArgumentError
from estimator_migration.proving.program import place_of

_LINES = 15


def record(python: str, program: str, folder: str | os.PathLike[str], *, steps: int, eval_batches: int) -> None:
    """Runs a program of tf.estimator, and writes the quantities that it computed.

    Args:
        python: the path of the interpreter of its environment.
        program: FILE[:FUNCTION]. The function takes a model_dir and returns a dict with the keys estimator,
            train_input_fn, eval_input_fn (default: the training one), train_hooks and eval_hooks (those that the inputs
            need).
        folder: the folder of the recording.
        steps: the number of training batches.
        eval_batches: the number of evaluation batches.

    Raises:
        ArgumentError: there is no such file or interpreter, or the program fails.
    """
    path, function = place_of(program)
    script = Path(__file__).with_name("tf_side.py")
    command = [python, str(script), str(path), function, os.fspath(folder), str(steps), str(eval_batches)]
    # The other interpreter must not see the packages of this one.
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    except OSError as error:
        raise ArgumentError(f"--tf-python {python} cannot be started: {error.strerror}.") from error
    if done.returncode:
        last = "\n  ".join(done.stderr.strip().splitlines()[-_LINES:])
        raise ArgumentError(f"{program} failed in {python}:\n  {last}")
