"""The experiment of a user's file, made for a command: the one place where commands load programs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_core.cli import command_parser
from estimator_core.errors import ArgumentError
from estimator_experiment.program import Program, load_program

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
    """The program that trained in a directory.

    Raises:
        ArgumentError: there is no record, or the run was started by another program than `estimator run`.
    """
    try:
        words = json.loads((Path(model_dir) / "run.json").read_text())["arguments"]
        args = command_parser("run").parse_args(words[words.index("run") + 1 :])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SystemExit):
        raise ArgumentError(
            f"The run record of {model_dir} names no file of `estimator run`. Give the file before --model-dir."
        ) from None
    return RecordedProgram(file=args.file, hparams=args.hparams, settings=tuple(args.settings))
