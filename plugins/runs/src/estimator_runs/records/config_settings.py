"""The settings of a configuration file that `run.json` does not contain: inputs, model, plan, hooks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_runs.capsule.start_records import newest_capsule

_TABLES = ("program", "model", "inputs", "train", "evaluate", "hooks", "exporters", "serving", "plugins")


def told_by_file(model_dir: Path) -> tuple[dict[str, Any], bool]:
    """Returns the values by key, and whether these are all. Files that cannot be read have no values.

    Args:
        model_dir: the directory of a run of `estimator run`, whose newest start has all values, or of a trial of a
            sweep, which has the values that the sweep has chosen.
    """
    try:
        flags = newest_capsule(model_dir)["flags"]
    except (ArgumentError, KeyError, TypeError):
        return _of_trial(model_dir / "trial.json"), False
    return {key: value for key, value in flags.items() if key.partition(".")[0] in _TABLES}, True


def _of_trial(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text())["params"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return dict(values) if isinstance(values, Mapping) else {}
