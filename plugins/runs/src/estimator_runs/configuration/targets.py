"""The code that a configuration names: `module:function`, `file.py:function`, and arguments that name further code."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from estimator_core.errors import EstimatorError, did_you_mean
from estimator_experiment.program import load_module
from estimator_runs.configuration.layers import KeyPath, Resolved
from estimator_runs.configuration.problems import ConfigurationError, at
from estimator_runs.configuration.schema import NONE

_CALL, _OBJECT, _ARGS = "call", "object", "args"
_HERE = "${here}"


def find_object(resolved: Resolved, path: KeyPath, text: str) -> Any:
    """Returns the object that a text at a key names.

    Args:
        resolved: the configuration with the origin of the text. Files and modules are searched from there.
        path: the path of the key.
        text: `package.module:name` or `file.py:name`.

    Raises:
        ConfigurationError: the module, file or name does not exist.
    """
    module_name, colon, name = text.rpartition(":")
    is_relative = module_name.startswith(".") and not module_name.endswith(".py")
    if not colon or not module_name or is_relative or not name:
        raise _refused(resolved, path, f"{text!r} does not name code: write package.module:name or file.py:name.")
    directory = resolved.origin(path).directory
    module = _module(resolved, path, module_name, directory)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise _refused(resolved, path, f"{module_name} has no {name!r}.{did_you_mean(part, public_names(found))}")
        found = getattr(found, part)
    return found


def _module(resolved: Resolved, path: KeyPath, name: str, directory: Path) -> Any:
    if name.endswith(".py"):
        file = directory / name
        if not file.is_file():
            beside = [each.name for each in file.parent.glob("*.py")] if file.parent.is_dir() else []
            raise _refused(resolved, path, f"there is no file {str(file)!r}.{did_you_mean(file.name, beside)}")
        place = file.resolve()
        if place not in resolved.modules:
            resolved.modules[place] = load_module(file)
        return resolved.modules[place]
    beside = str(directory.resolve())
    if beside not in sys.path:
        sys.path.insert(0, beside)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module exists, but an import in it fails
        known = [each.stem for each in Path(beside).glob("*.py")]
        raise _refused(resolved, path, f"there is no module {error.name!r}.{did_you_mean(error.name, known)}") from None


def public_names(holder: Any) -> list[str]:
    """Returns the names without a leading underscore."""
    return [name for name in dir(holder) if not name.startswith("_")]


def call(resolved: Resolved, path: KeyPath, function: Callable[..., Any], args: Mapping[str, Any], **given: Any) -> Any:
    """Calls a function with the arguments at a key.

    Args:
        resolved: the configuration with the origin of the arguments.
        path: the path of the arguments.
        function: the function to call.
        args: the arguments as in the file. Tables with `call` or `object` name code, and their result replaces them.
        **given: arguments that do not come from a file.

    Raises:
        ConfigurationError: the function does not have such an argument, needs others, or refuses their values.
    """
    parameters = _parameters(function)
    accepts_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    problems = [
        at(resolved, (*path, name), f"{_called(function)} takes no such argument.{did_you_mean(name, parameters)}")
        for name in args
        if parameters and not accepts_all and name not in parameters
    ]
    problems += [at(resolved, (*path, name), "is set by the run itself. Remove it.") for name in args if name in given]
    needed = [
        name
        for name, each in parameters.items()
        if each.default is inspect.Parameter.empty
        and each.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    ]
    missing = [name for name in needed if name not in args and name not in given]
    if missing:
        problems.append(at(resolved, path, f"{_called(function)} needs {', '.join(missing)} as well."))
    if problems:
        raise ConfigurationError(problems)
    values = {name: argument(resolved, (*path, name), value) for name, value in args.items()}
    try:
        return function(**values, **{name: value for name, value in given.items() if accepts_all or name in parameters})
    except ConfigurationError:
        raise
    except (ValueError, TypeError) as error:
        # The place of the argument that the message names, if it names one.
        named = next((name for name in args if name in str(error)), None)
        place = path if named is None else (*path, named)
        raise _refused(resolved, place, f"{_called(function)} refuses it: {error}") from error
    except EstimatorError as error:
        from estimator_experiment.faults import fault

        fault(str(at(resolved, path, f"{_called(function)} fails")), error)  # a command shows one line, without notes
        raise
    except Exception as error:
        error.add_note(str(at(resolved, path, f"{_called(function)} was called with it.")))
        raise


def argument(resolved: Resolved, path: KeyPath, value: Any) -> Any:
    """Returns a value of a file in the form for code: "none" becomes None, `${here}` the directory of the file."""
    if isinstance(value, Mapping):
        if _CALL in value or _OBJECT in value:
            return _coded(resolved, path, value)
        return {key: argument(resolved, (*path, key), each) for key, each in value.items()}
    if isinstance(value, list):
        return [argument(resolved, (*path, place), each) for place, each in enumerate(value)]
    if value == NONE:
        return None
    return with_here(resolved, path, value) if isinstance(value, str) else value


def with_here(resolved: Resolved, path: KeyPath, text: str) -> str:
    """Returns a string of a file with the directory of the file in the place of `${here}`."""
    return text.replace(_HERE, str(resolved.origin(path).directory)) if _HERE in text else text


def _coded(resolved: Resolved, path: KeyPath, value: Mapping[str, Any]) -> Any:
    allowed = {_CALL, _ARGS} if _CALL in value else {_OBJECT}
    for key in value:
        if key not in allowed:
            hint = did_you_mean(key, allowed)
            what = f"only {_ARGS} may be combined with {_CALL}, and nothing with {_OBJECT}.{hint}"
            raise _refused(resolved, (*path, key), what)
    key = _CALL if _CALL in value else _OBJECT
    if not isinstance(value[key], str):
        raise _refused(resolved, (*path, key), f"should be a string that names code, given {value[key]!r}.")
    found = find_object(resolved, (*path, key), value[key])
    if key == _OBJECT:
        return found
    args = value.get(_ARGS, {})
    if isinstance(args, list):
        return _positional(resolved, (*path, _ARGS), found, args)
    if not isinstance(args, Mapping):
        raise _refused(resolved, (*path, _ARGS), f"should be a table or a list, given {args!r}.")
    return call(resolved, (*path, _ARGS), found, args)


def _positional(resolved: Resolved, path: KeyPath, function: Callable[..., Any], args: list[Any]) -> Any:
    values = [argument(resolved, (*path, place), each) for place, each in enumerate(args)]
    try:
        return function(*values)
    except (ValueError, TypeError) as error:
        raise _refused(resolved, path, f"{_called(function)} refuses it: {error}") from error


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Returns the named parameters of a function; empty if they are not known."""
    try:
        return inspect.signature(function).parameters
    except (ValueError, TypeError):
        return {}


def _called(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", repr(function))


def _refused(resolved: Resolved, path: KeyPath, text: str) -> ConfigurationError:
    return ConfigurationError([at(resolved, path, text)])
