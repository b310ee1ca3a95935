"""Reads the file of `--names`: names in TensorFlow by name in estimator-core."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError


def read_names(path: str | None) -> Mapping[str, str] | None:
    """Returns the content of a JSON file `{"name here": "name there"}`, or None without a file.

    Raises:
        ArgumentError: the file cannot be read, or holds something else.
    """
    if path is None:
        return None
    try:
        found: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"--names {path} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        raise ArgumentError(f"--names {path} is not JSON: {error}.") from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found.values()):
        raise ArgumentError(f'--names {path} must map names here to names there: {{"name here": "name there"}}.')
    return found
