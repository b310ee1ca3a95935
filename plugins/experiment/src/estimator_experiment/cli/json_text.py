"""The JSON output of `--json`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, cast


def json_text(value: Any, *, default: Callable[[Any], Any] | None = None) -> str:
    """Returns a value as JSON on one line that strict readers accept. A number that is not finite becomes a string.

    Args:
        value: a value that `json.dumps` accepts.
        default: a function that returns the replacement of a value of another type.

    Example:
        >>> json_text({"loss": float("nan"), "rates": [0.5, -float("inf")]})
        '{"loss": "NaN", "rates": [0.5, "-Infinity"]}'
    """
    try:
        return json.dumps(value, default=default, allow_nan=False)
    except ValueError:
        return json.dumps(_named(json.loads(json.dumps(value, default=default))))


def _named(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, list):
        return [_named(one) for one in cast(list[Any], value)]
    return {name: _named(one) for name, one in value.items()} if isinstance(value, Mapping) else value
