"""A user's program, loaded from its file for `estimator run` and `estimator plan`."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError
from estimator_core.plugins import default_plugins
from estimator_experiment.hparams import HParams

_PREFIX = "run_config."


@dataclass(frozen=True, kw_only=True)
class Program:
    """The definitions of a file for `estimator run`.

    Args:
        path: the path of the file.
        experiment_fn: `(run_config, hparams) -> Experiment`.
        default_hparams: the hyperparameters of the file; None if it defines none.
        serving_input_receiver_fn: describes requests to an export; None if the file does not define it.
        settings: RunConfig fields that the file or the command line sets. The command line takes precedence.
    """

    path: Path
    experiment_fn: Callable[..., Any]
    default_hparams: HParams | None
    serving_input_receiver_fn: Callable[[], Any] | None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def hparams(self, text: str) -> HParams | None:
        """Returns the hyperparameters of the file, overridden by those of the command line."""
        if self.default_hparams is None:
            if text:
                raise ArgumentError(
                    f"{self.path} defines no HPARAMS, so --hparams has nothing to replace. Define HPARAMS = "
                    "ec.HParams(...) there."
                )
            return None
        values = HParams(**self.default_hparams.values())
        return values.parse(text) if text else values

    def run_config(self, model_dir: str | None = None) -> RunConfig:
        """Returns the RunConfig of a run.

        Args:
            model_dir: the model_dir. None: from the settings, or `runs/<name of the file>`.
        """
        changes = dict(self.settings)
        changes["model_dir"] = model_dir or changes.get("model_dir") or default_model_dir(self.path)
        return RunConfig(**changes)


class ProgramFormat(Protocol):
    """A component of kind "program_format", which reads files other than Python. Its name is their extension."""

    def __call__(self, path: Path, settings: Sequence[str], /) -> Program:
        """Reads the program of a file.

        Args:
            path: the path of the file.
            settings: texts of `--set`, in the syntax of the format.
        """
        ...


def load_program(file: str, settings: Sequence[str] = ()) -> Program:
    """Reads a file and returns the definitions that `estimator run` needs.

    Args:
        file: a Python file, optionally with `:function`, or a file of an installed program format, such as .toml.
        settings: texts of `--set`; for a Python file `run_config.FIELD=VALUE`.

    Raises:
        ArgumentError: there is no such file or function.
    """
    name, function = file_and_function(file)
    path = Path(name)
    ending = path.suffix.removeprefix(".")
    if ending not in ("", "py"):
        formats = default_plugins().names("program_format")
        if ending not in formats:
            raise ArgumentError(
                f"{name} is not a Python file, and no program format reads .{ending}. "
                f"They read: {', '.join(formats) or 'nothing'}."
            )
        if function:
            raise ArgumentError(
                f"{file} names a function, but only a Python file has functions. Write {name}; its table [program] has "
                "the key function."
            )
        read: ProgramFormat = default_plugins().get("program_format", ending)
        return read(path, settings)
    changes = dict(_setting(text) for text in settings)
    if not path.is_file():
        raise ArgumentError(
            f"There is no file {name!r}. Give the path of a Python file that defines experiment_fn(run_config, "
            "hparams)."
        )
    module = load_module(path)
    found = getattr(module, function or "experiment_fn", None)
    if not callable(found):
        functions = sorted(
            key
            for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__ and not isinstance(value, type)
        )
        raise ArgumentError(
            f"{name} defines no function {function or 'experiment_fn'!r}. Functions there: {functions}. Name one with "
            f"{name}:FUNCTION; it takes (run_config, hparams) and returns an ec.Experiment."
        )
    hparams = getattr(module, "HPARAMS", None)
    if hparams is not None and not isinstance(hparams, HParams):
        raise ArgumentError(f"HPARAMS in {name} must be an ec.HParams, given: {type(hparams).__name__}.")
    return Program(
        path=path,
        experiment_fn=found,
        default_hparams=hparams,
        serving_input_receiver_fn=getattr(module, "serving_input_receiver_fn", None),
        settings=changes,
    )


def default_model_dir(path: Path) -> str:
    """Returns the model_dir of a program that sets none: `runs/<name of the file>`."""
    return f"runs/{path.stem}"


def file_and_function(file: str) -> tuple[str, str]:
    """Returns the two parts of FILE:FUNCTION. The second is empty if no function is named.

    Example:
        >>> file_and_function("line.py:other"), file_and_function("/runs/9:30/line.py")
        (('line.py', 'other'), ('/runs/9:30/line.py', ''))
    """
    name, colon, function = file.rpartition(":")
    return (name, function) if colon and "/" not in function and not Path(file).exists() else (file, "")


def receiver_of(path: Path) -> str:
    """Returns the name by which a program of this kind of file defines the content of requests to an export.

    Example:
        >>> receiver_of(Path("line.py")), receiver_of(Path("line.toml")), receiver_of(Path("line.acme"))
        ('serving_input_receiver_fn', '[serving]', 'serving_input_receiver_fn')
    """
    return "[serving]" if path.suffix in (".toml", ".yaml", ".yml") else "serving_input_receiver_fn"


def load_module(path: Path) -> ModuleType:
    """Runs a Python file as the module of its name. From then on, modules in its directory can be imported.

    It is compiled each time, because Python recognises compiled modules by whole seconds and size, which an edit may
    keep.

    Raises:
        ArgumentError: it is not a Python file, or its content is not Python.
    """
    try:
        code = compile(path.read_bytes(), str(path.absolute()), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise ArgumentError(f"{path}{f':{line}' if line else ''}: this is not Python: {error.args[0]}.") from error
    folder = str(path.parent.resolve())
    if sys.path[:1] != [folder]:  # a path that grows with every program would look new to the search for plugins
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None:
        raise ArgumentError(f"{path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    exec(code, vars(module))
    return module


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith(_PREFIX):
        told = (
            " Hyperparameters of a Python file are set by --hparams NAME=VALUE." if name.startswith("hparams.") else ""
        )
        raise ArgumentError(
            f"--set {text!r}: write {_PREFIX}FIELD=VALUE. Fields: {[field.name for field in fields(RunConfig)]}.{told}"
        )
    try:
        return name.removeprefix(_PREFIX), ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):  # the exceptions of literal_eval
        return name.removeprefix(_PREFIX), value
