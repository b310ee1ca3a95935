"""Loads the function of a program that returns the parts of a proof."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.estimator import Estimator

#: The name of the function, unless FILE:FUNCTION names another.
DEFAULT = "proof"
_KEYS = ("estimator", "train_input_fn", "eval_input_fn", "train_hooks", "eval_hooks")


def place_of(named: str) -> tuple[Path, str]:
    """Returns the file and the function of FILE[:FUNCTION].

    Raises:
        ArgumentError: there is no such file.

    Example:
        >>> place_of("no_such.py:linear")
        Traceback (most recent call last):
        estimator_core.errors.ArgumentError: There is no file no_such.py.
    """
    name, _, function = (named, "", "") if Path(named).exists() else named.partition(":")
    if not Path(name).is_file():
        raise ArgumentError(f"There is no file {name}.")
    return Path(name), function or DEFAULT


def load(named: str) -> Callable[[str], Mapping[str, Any]]:
    """Returns the function of FILE[:FUNCTION], which maps a model_dir to the parts.

    Raises:
        ArgumentError: there is no such file or function.
    """
    path, name = place_of(named)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise ArgumentError(f"{path} is not a Python file.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent.resolve()))
    function = getattr(module, name, None)
    if not callable(function):
        raise ArgumentError(
            f"{path} defines no function {name}(model_dir). It returns a dict with the parts that are compared: "
            "estimator, train_input_fn and eval_input_fn."
        )
    return cast(Callable[[str], Mapping[str, Any]], function)


def estimator_of(parts: Any, named: str) -> Estimator:
    """Returns the Estimator in the result of a function.

    Raises:
        ArgumentTypeError: the result is not a dict with an Estimator, or has unknown keys.
    """
    estimator = parts.get("estimator") if isinstance(parts, Mapping) else None
    if not isinstance(estimator, Estimator):
        raise ArgumentTypeError(f"{named} must return a dict with an ec.Estimator as 'estimator', given: {parts!r}.")
    unknown = sorted(str(key) for key in parts if key not in _KEYS)
    if unknown:
        raise ArgumentTypeError(f"{named} returns {unknown}; a proof reads {list(_KEYS)}.")
    return estimator
