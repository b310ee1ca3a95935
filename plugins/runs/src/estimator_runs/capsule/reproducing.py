"""The repetition of a run, and the comparison: the same weights bit for bit, or the first difference."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator_core.checkpoint import all_checkpoints, checkpoint_step
from estimator_core.errors import ArgumentError
from estimator_runs.capsule.child import exit_code
from estimator_runs.capsule.differences import Difference, capsule_differences
from estimator_runs.capsule.rebuilding import build_environment
from estimator_runs.capsule.settings import LAST_STEP, PLACEMENT, environment_again
from estimator_runs.capsule.start_records import Start, read_starts
from estimator_runs.capsule.weights import first_difference

_SEED = "run_config.tf_random_seed"
_MODEL_DIR = "run_config.model_dir="
_MAIN = "from estimator_core.cli import main; raise SystemExit(main())"


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """The result of running a run again.

    Args:
        step: the step at which the weights are compared.
        weights: how the weights differ; None: they are equal bit for bit.
        differences: the differences of the records. The first one is the most likely cause.
    """

    step: int
    weights: str | None
    differences: tuple[Difference, ...]


def reproduce(
    run: Path, folder: Path, *, here: bool = False, settings: Sequence[str] = (), quiet: bool = False
) -> Reproduced:
    """Runs a run of `estimator run` again, in an environment like its own, and compares the weights.

    Args:
        run: the model_dir of the run.
        folder: an empty or missing directory. `run` in it becomes the new model_dir, `environment` the environment.
        here: whether to use the current environment.
        settings: further texts of `--set`, to test what they change.
        quiet: whether the second run logs only warnings and errors.

    Raises:
        ArgumentError: the run has no record, no seed or no checkpoint, or was trained by several processes. Also if the
            folder is not empty, or the program fails.
    """
    starts = read_starts(run)
    newest = starts[-1].capsule
    checkpoints = {checkpoint_step(path): Path(path) for path in all_checkpoints(str(run))}
    if not checkpoints:
        raise ArgumentError(f"{run} has no checkpoint to compare with.")
    _refuse_several(run, newest)
    if newest["seeds"].get(_SEED) is None and not any(text.startswith(f"{_SEED}=") for text in settings):
        raise ArgumentError(f"The seed of {run} was drawn, so no run can repeat its numbers: set {_SEED} in new runs.")
    _make_empty(folder)
    new = folder.resolve() / "run"
    python = Path(sys.executable) if here else build_environment(newest["packages"], folder.resolve() / "environment")
    present = {name: value for name, value in os.environ.items() if name not in PLACEMENT}
    environ = present if here else environment_again({**newest["flags"], **newest["seeds"]}, os.environ)
    _run_again(python, newest, new, settings, {**environ, LAST_STEP: str(max(checkpoints))}, quiet)
    return compare(starts, checkpoints, new)


def compare(starts: Sequence[Start], checkpoints: Mapping[int, Path], new: Path) -> Reproduced:
    """Compares a run with its repetition.

    Args:
        starts: all starts of the run.
        checkpoints: the checkpoints of the run by step.
        new: the model_dir of the second run.

    Raises:
        ArgumentError: there is no step at which both have a checkpoint.
    """
    again = {checkpoint_step(path): Path(path) for path in all_checkpoints(str(new))}
    common = sorted(again.keys() & checkpoints.keys())
    if not common:
        raise ArgumentError(
            f"There is no step at which both runs have a checkpoint: {sorted(checkpoints)} and {sorted(again)}."
        )
    step = common[-1]
    now = read_starts(new)[-1].capsule
    found = [one for start in (starts[-1], *starts[:-1]) for one in capsule_differences(start.capsule, now)]
    return Reproduced(
        step=step,
        weights=first_difference(checkpoints[step], again[step]),
        differences=tuple(dict.fromkeys(found)),
    )


def _make_empty(folder: Path) -> None:
    """Creates an empty directory, or accepts an existing one.

    Raises:
        ArgumentError: it is not empty, is a file, or cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = not any(folder.iterdir())
    except OSError as error:
        told = f"{folder} cannot be a directory of this run: {error.strerror}."
        raise ArgumentError(f"{told} Give another directory (--output).") from error
    if not empty:
        raise ArgumentError(f"{folder} is not empty. Remove it, or give another directory (--output).")


def _refuse_several(run: Path, capsule: Mapping[str, Any]) -> None:
    processes = capsule["hardware"].get("processes", 1)
    if processes > 1:
        raise ArgumentError(
            f"{run} was trained by {processes} processes together, and `estimator reproduce` runs one. Launch the "
            "program again as it was launched, into another model_dir, and compare what `estimator_runs.read_starts` "
            "and `capsule_differences` return for both."
        )


def _run_again(
    python: Path,
    capsule: Mapping[str, Any],
    model_dir: Path,
    settings: Sequence[str],
    environ: Mapping[str, str],
    quiet: bool,
) -> None:
    """Runs the program of a record as a process.

    Args:
        python: the interpreter.
        capsule: the record.
        model_dir: the new model_dir.
        settings: further texts of `--set`.
        environ: the environment of the process.
        quiet: whether it logs only warnings and errors.
    """
    told = capsule["command"]
    words = [*_words(told["words"], model_dir, settings), *(["--quiet"] if quiet else [])]
    if any("***" in word for word in words):
        raise ArgumentError(
            f"The run was started with a secret that its record does not hold: {words}. Run it with a setting that "
            "holds none, such as the name of a variable of the environment."
        )
    directory = Path(told["directory"])
    # -P: the command `estimator` does not have the current directory in its path either.
    command = [str(python), "-P", "-c", _MAIN, *words]
    output = subprocess.DEVNULL if quiet else 2
    code = exit_code(command, environ, directory if directory.is_dir() else None, output=output)
    if code:
        raise ArgumentError(f"The program failed with exit code {code} when it was run again: estimator {words}.")


def _words(words: Sequence[str], model_dir: Path, settings: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for place, word in enumerate(words):
        follows = words[place + 1] if place + 1 < len(words) else ""
        if not word.startswith(_MODEL_DIR) and not (word == "--set" and follows.startswith(_MODEL_DIR)):
            kept.append(word)
    added = [part for text in settings for part in ("--set", text)]
    return [*kept, *added, "--model-dir", str(model_dir), "--predictions", "0"]
