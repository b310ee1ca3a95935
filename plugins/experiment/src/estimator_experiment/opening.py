"""The experiment of a user's file, made for a command: the one place where commands load programs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core.cli import command_parser
from estimator_core.errors import ArgumentError
from estimator_experiment.program import Program, file_and_function, load_program

if TYPE_CHECKING:
    from estimator_experiment.experiment import Experiment


@dataclass(frozen=True, kw_only=True)
class OpenedProgram:
    """A program, and the experiment it made.

    Attributes:
        program: what the file defines.
        experiment: made for the model_dir, hyperparameters and settings of the command.
    """

    program: Program
    experiment: Experiment


@dataclass(frozen=True, kw_only=True)
class RecordedProgram:
    """What the `estimator run` was given that trained in a directory."""

    file: str
    hparams: str
    settings: tuple[str, ...]


def add_program_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds FILE, `--hparams` and `--set`, as the commands take them that work on a run that exists."""
    parser.add_argument(
        "file", metavar="FILE[:FUNCTION]", nargs="?", help="as for `estimator run` (default: that of the run record)"
    )
    parser.add_argument(
        "--hparams", default=None, metavar="a=1,b=[2,3]", help="hyperparameters that replace the file's"
    )
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="run_config.FIELD=VALUE",
        help="a RunConfig field",
    )


def not_empty(text: str) -> str:
    """The value of an option that names a place: `add_argument(..., type=not_empty)`.

    Raises:
        ArgumentTypeError: it is empty, as where a variable of the shell is not set.

    Example:
        >>> not_empty("runs/one")
        'runs/one'
    """
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def open_program(
    file: str | None,
    *,
    model_dir: str,
    hparams: str | None = None,
    settings: Sequence[str] = (),
    record: str | None = None,
) -> OpenedProgram:
    """Loads a program and makes its experiment.

    Args:
        file: as `load_program` takes it; None: that of the run record, with its
            hyperparameters and settings below those that are given.
        model_dir: where the experiment writes.
        hparams: hyperparameters that replace the file's, as a text; None: those of the record, if it is asked.
        settings: texts of `--set`; of a Python file RunConfig fields, each `run_config.FIELD=VALUE`.
        record: the directory whose run record is asked; default: `model_dir`.

    Raises:
        ArgumentError: there is no such file, function, hyperparameter or field, or no record that names a program.
    """
    recorded = recorded_program(record or model_dir) if file is None else None
    if file is None and recorded is not None:
        file, hparams = recorded.file, recorded.hparams if hparams is None else hparams
        settings = [*recorded.settings, *settings]
    program = load_program(file or "", settings)
    config = program.run_config(model_dir)
    return OpenedProgram(program=program, experiment=program.experiment_fn(config, program.hparams(hparams or "")))


def recorded_program(model_dir: str) -> RecordedProgram:
    """The program that trained in a directory: the file of that name where the run was started.

    Raises:
        ArgumentError: there is no record, the run was started by another program than `estimator run`, the file is no
            longer there, or nothing says where it was.
    """
    path = Path(model_dir) / "run.json"
    try:
        record = json.loads(path.read_text())
        words = record["arguments"]
        args = command_parser("run").parse_args(words[words.index("run") + 1 :])
        started = _started_in(record, model_dir)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, SystemExit):
        raise ArgumentError(
            f"The run record of {model_dir} names no file of `estimator run`. Give the file before --model-dir."
        ) from None
    return RecordedProgram(file=_found(args.file, started, path), hparams=args.hparams, settings=tuple(args.settings))


def _started_in(record: Mapping[str, Any], model_dir: str) -> Path:
    """The directory in which a run was started; empty: nothing says it.

    An older record does not name it, and a relative model_dir tells whether it is the current one.
    """
    if known := record.get("directory"):
        return Path(known)
    said = Path(record["run_config"]["model_dir"])
    return Path.cwd() if not said.is_absolute() and said.resolve() == Path(model_dir).resolve() else Path()


def _found(file: str, started: Path, record: Path) -> str:
    """FILE[:FUNCTION] of a record, with the path of the file.

    Args:
        file: as recorded, relative to where the run was started.
        started: that directory; empty: it is not known.
        record: the path of the record.

    Raises:
        ArgumentError: there is no such file, or nothing says in which directory it is.
    """
    name, function = file_and_function(file)
    path = started / name
    if not path.is_absolute():
        raise ArgumentError(
            f"{record} says that {name!r} was run, but not in which directory. Give the file before --model-dir."
        )
    if not path.is_file():
        raise ArgumentError(
            f"{record} says that {name!r} was run, and there is no file {str(path)!r}. The run was started in "
            f"{started}. Give the file before --model-dir."
        )
    return f"{path}:{function}" if function else str(path)
