"""Checkpoints of other frameworks. Components of kind `initial_values` list the names of the files that they read."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from estimator_core._model.initial_values import ReadsCheckpoints
from estimator_core._plugins import Plugins
from estimator_core._plugins.in_use import plugins_in_use
from estimator_core.errors import CheckpointError

_KIND = "initial_values"
_log = logging.getLogger("estimator_core")


def foreign_variables(path: str | os.PathLike[str]) -> Mapping[str, np.ndarray] | None:
    """Returns the arrays of a checkpoint of another framework, by name; None if no installed component reads the
    path.
    """
    reader = _reader(path, plugins_in_use())
    return None if reader is None else reader.load(os.fspath(path))


def refuse_foreign(model_dir: str | os.PathLike[str], plugins: Plugins) -> None:
    """Refuses a model_dir with a checkpoint of another framework, because training would ignore it and start again.

    Raises:
        CheckpointError: the model_dir contains such a checkpoint. The message names the command that converts it.
    """
    reader = _reader(model_dir, plugins)
    if reader is not None:
        raise CheckpointError(
            f"The model_dir {os.fspath(model_dir)} has a checkpoint of {reader.title} and none of this framework. To "
            f"continue from it: {reader.conversion.format(path=os.fspath(model_dir))}. To load only its weights, use "
            "another model_dir and pass this one as warm_start_from."
        )


def _reader(path: str | os.PathLike[str], plugins: Plugins) -> ReadsCheckpoints | None:
    place = Path(path)
    folder, start = (place, "") if place.is_dir() else (place.parent, place.name)
    names = [each.name for each in folder.iterdir() if each.name.startswith(start)] if folder.is_dir() else []
    first = {} if not names else dict.fromkeys([*plugins.automatic(_KIND), *plugins.names(_KIND)])
    found = [
        name
        for name in first
        if any(fnmatch(each, pattern) for each in names for pattern in plugins.find(_KIND, name).component.reads)
    ]
    if len(found) > 1:
        _log.warning("%s can be read by %s; the first one is used. Block its plugin to use another", path, found)
    return plugins.get(_KIND, found[0]) if found else None  # type: ignore[return-value]
