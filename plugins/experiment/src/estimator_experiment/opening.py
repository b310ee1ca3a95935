"""Loads the program of a file and makes its experiment, for all commands."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core.cli import command_parser
from estimator_core.errors import ArgumentError
from estimator_core.storage import StorageGoneError, is_url, open_storage
from estimator_experiment.hparams import HParams
from estimator_experiment.program import Program, file_and_function, load_program

if TYPE_CHECKING:
    from estimator_experiment.experiment import Experiment

_log = logging.getLogger("estimator_core")
_RECORD = "run.json"
#: The file in `file.py:name`, which is the whole value or a part of it.
_CODE = re.compile(r"""(?:^|(?<=["']))[^"'=,{}\[\]:]+\.py(?=:[A-Za-z_][\w.]*(?:["']|$))""")
#: The memory address in the repr of an object.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclass(frozen=True, kw_only=True)
class OpenedProgram:
    """A program and its experiment.

    Attributes:
        program: the definitions of the file.
        experiment: the experiment for the model_dir, hyperparameters and settings of the command.
        model_dir: the directory or URL of the run.
    """

    program: Program
    experiment: Experiment
    model_dir: str


@dataclass(frozen=True, kw_only=True)
class RecordedProgram:
    """The arguments of the `estimator run` that trained in a directory."""

    file: str
    hparams: str
    settings: tuple[str, ...]


def add_program_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds FILE, `--hparams` and `--set`, in the form for commands that work on an existing run."""
    parser.add_argument(
        "file", metavar="FILE[:FUNCTION]", nargs="?", help="see `estimator run` (default: the file in the run record)"
    )
    parser.add_argument(
        "--hparams", default=None, metavar="a=1,b=[2,3]", help="hyperparameters that override those of the file"
    )
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="run_config.FIELD=VALUE",
        help="a RunConfig field",
    )


def add_model_dir(parser: argparse.ArgumentParser) -> None:
    """Adds `--model-dir`, in the form for commands that work on an existing run."""
    parser.add_argument(
        "--model-dir", type=not_empty, help="directory of the run (default: where `estimator run FILE` trains)"
    )


def not_empty(text: str) -> str:
    """Returns the value of an option that names a place: `add_argument(..., type=not_empty)`.

    Raises:
        ArgumentTypeError: the value is empty, for example because a shell variable is not set.

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
    model_dir: str | None,
    hparams: str | None = None,
    settings: Sequence[str] = (),
    record: str | None = None,
    trained: bool = False,
) -> OpenedProgram:
    """Loads a program and makes its experiment.

    Args:
        file: the file in the form of `load_program`. None: the file of the run record. Its hyperparameters and settings
            then apply below the given ones.
        model_dir: the directory to which the experiment writes. None: the one to which `estimator run` writes.
        hparams: a text with hyperparameters that override those of the file. None: those of the record, if it is used.
        settings: the texts of `--set`. For a Python file, they are RunConfig fields, each `run_config.FIELD=VALUE`.
        record: the directory whose run record is used; default: `model_dir`.
        trained: whether the model_dir must already exist. Without this check, an experiment creates a model_dir at a
            URL.

    Raises:
        ArgumentError: the file, function, hyperparameter or field does not exist, or no record names a program. Also if
            neither a file nor a directory is given, or if `trained` is set and the model_dir does not exist.
    """
    if trained and model_dir is not None:
        if any(text.startswith("run_config.model_dir=") for text in settings):
            raise ArgumentError("model_dir is given twice, by --model-dir and by --set.")
        _check_there(model_dir)
    if file is None:
        directory = record or model_dir
        if directory is None:
            raise ArgumentError("Give the file of the program, or the directory of its run as --model-dir.")
        recorded = recorded_program(directory)
        file, hparams = recorded.file, recorded.hparams if hparams is None else hparams
        settings = [*recorded.settings, *settings]
    program = load_program(file, settings)
    config = program.run_config(model_dir)
    if model_dir is None:
        model_dir = str(config.model_dir)
        if trained:
            _check_there(model_dir, "Train with `estimator run`, or name the directory of the run with --model-dir.")
    experiment = program.experiment_fn(config, program.hparams(hparams or ""))
    if others := _other_hparams(record or model_dir, experiment.estimator.params):
        told = ", ".join(f"{name}={trained!r}, not {now!r}" for name, (trained, now) in others.items())
        _log.warning(
            "%s was trained with %s. To use the values of the training, pass them with --hparams.",
            record or model_dir,
            told,
        )
    return OpenedProgram(program=program, experiment=experiment, model_dir=model_dir)


def _read_record(model_dir: str) -> Any:
    """Returns the run record of a directory or a URL.

    Raises:
        OSError: the record does not exist or cannot be read.
        ValueError: the record is not JSON.
    """
    path = Path(model_dir) / _RECORD
    return json.loads(open_storage(model_dir, make=False).get(_RECORD) if is_url(model_dir) else path.read_text())


def _check_there(model_dir: str, advice: str = "Correct the path.") -> None:
    """Refuses a missing directory, bucket or container, because advice about its content would be wrong.

    Raises:
        ArgumentError: it does not exist.
        StorageError: the store does not answer.
    """
    try:
        with contextlib.closing(open_storage(model_dir, make=False)) as storage:
            next(iter(storage.list("journal")), None)  # opening a storage sends no request
    except StorageGoneError as error:
        raise ArgumentError(f"{error} {advice}") from None


def _other_hparams(record: str, params: Any) -> dict[str, tuple[Any, Any]]:
    """Returns the hyperparameters that differed when a directory was trained: the value then, and the value now.

    A trial of a sweep has its own values, which its file does not contain.
    """
    try:
        trained: Any = _read_record(record)["hparams"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    values: Any = params.values() if isinstance(params, HParams) else params
    if not isinstance(trained, Mapping) or not isinstance(values, Mapping):
        return {}
    in_order = {str(name): value for name, value in values.items() if not isinstance(value, (set, frozenset))}
    now = json.loads(json.dumps(in_order, default=repr))
    return {
        name: (value, now[name])
        for name, value in trained.items()
        if name in now and _differ(value, now[name]) and "***" not in str(value)  # the record masks secrets
    }


def _differ(trained: Any, now: Any) -> bool:
    """Returns whether two JSON values differ. NaN equals NaN, and a function equals the same one in another process."""
    told, tells = (_ADDRESS.sub("", json.dumps(value)) for value in (trained, now))
    return trained != now and told != tells


def recorded_program(model_dir: str) -> RecordedProgram:
    """Returns the program that trained in a directory: the file of that name where the run was started.

    Raises:
        ArgumentError: there is no directory or no record, another program than `estimator run` started the run, the
            file no longer exists, or its directory is not known.
    """
    path = Path(model_dir) / _RECORD
    _check_there(model_dir)
    try:
        record = _read_record(model_dir)
        words = record["arguments"]
        with contextlib.redirect_stderr(io.StringIO()):  # the words may be those of another command, with a value "run"
            args = command_parser("run").parse_args(words[words.index("run") + 1 :])
        started = _started_in(record, model_dir)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, SystemExit):
        raise ArgumentError(
            f"The run record of {model_dir} names no file of `estimator run`. Give the file before --model-dir."
        ) from None
    settings = tuple(_from_there(text, started) for text in args.settings)
    return RecordedProgram(file=_found(args.file, started, path), hparams=args.hparams, settings=settings)


def _started_in(record: Mapping[str, Any], model_dir: str) -> Path:
    """Returns the directory in which a run was started; empty: it is not known.

    An older record does not name it. Then a relative model_dir shows whether it is the current directory.
    """
    if known := record.get("directory"):
        return Path(known)
    said = Path(record["run_config"]["model_dir"])
    return Path.cwd() if not said.is_absolute() and said.resolve() == Path(model_dir).resolve() else Path()


def _from_there(text: str, started: Path) -> str:
    """Returns a text of `--set` whose Python files and `${here}` are relative to the directory of the run's start.

    Example:
        >>> _from_there("model.function=line.py:model_fn", Path("/runs")), _from_there("hparams.a=1", Path("/runs"))
        ('model.function=/runs/line.py:model_fn', 'hparams.a=1')
        >>> _from_there("program.file=line.py", Path("/runs"))
        'program.file=/runs/line.py'
    """
    key, equals, value = text.partition("=")
    if not started.is_absolute() or key.strip().partition(".")[0] == "hparams":  # these reach the program unchanged
        return text
    if key.strip() == "program.file":
        value = str(started / value.strip().strip("'\""))
    moved = _CODE.sub(lambda found: str(started / found[0]), value.replace("${here}", str(started)))
    return f"{key}{equals}{moved}"


def _found(file: str, started: Path, record: Path) -> str:
    """Returns FILE[:FUNCTION] of a record, with the path of the file.

    Args:
        file: the recorded file, relative to the directory in which the run was started.
        started: that directory; empty: it is not known.
        record: the path of the record.

    Raises:
        ArgumentError: the file does not exist, or its directory is not known.
    """
    name, function = file_and_function(file)
    path = started / name
    if not path.is_absolute():
        raise ArgumentError(
            f"{record} says that {name!r} was run, but not in which directory. Give the file before --model-dir."
        )
    if not path.is_file():
        raise ArgumentError(
            f"{record} says that {name!r} was run, but there is no file {str(path)!r}. The run was started in "
            f"{started}. Give the file before --model-dir."
        )
    return f"{path}:{function}" if function else str(path)
