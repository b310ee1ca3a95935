"""`run.json`: what a run was started with, for whoever looks at it later."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import sys
import time
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

FILE = "run.json"
_PACKAGES = ("estimator-core", "jax", "jaxlib", "numpy", "optax", "orbax-checkpoint", "flax")


def write_run_record(
    model_dir: Path, *, config: Any, params: Any, call: Mapping[str, Any], plugins: list[dict[str, str]]
) -> None:
    """Writes (atomically) the newest start's record; earlier starts stay listed under "starts"."""
    path = model_dir / FILE
    try:
        earlier = json.loads(path.read_text())["starts"]
    except (OSError, ValueError, KeyError):
        earlier = []
    record = {
        "versions": versions(),
        "arguments": sys.argv,
        "run_config": {field.name: plain(getattr(config, field.name)) for field in dataclasses.fields(config)},
        "hparams": plain(params),
        "call": plain(call),
        "plugins": plugins,
        "starts": [*earlier[-99:], {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "step": call.get("first_step")}],
    }
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(record, indent=1) + "\n")
    temporary.replace(path)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages a run depends on."""
    return dict(_versions())


@cache  # reading the metadata of the packages takes longer than a hundred steps of a small model
def _versions() -> tuple[tuple[str, str], ...]:
    found = [("python", platform.python_version())]
    for name in _PACKAGES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)


def plain(value: Any) -> Any:
    """A value as JSON can hold it; what it cannot hold becomes its repr."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if (
        callable(getattr(value, "values", None))
        and not isinstance(value, Mapping)
        and callable(getattr(value, "to_json", None))
    ):
        value = value.values()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return repr(value)
