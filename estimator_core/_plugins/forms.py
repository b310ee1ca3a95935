"""The forms names and targets have in the records of plugins."""

from __future__ import annotations

import re

from estimator_core.errors import ArgumentError

NAME = re.compile(r"[a-z][a-z0-9_]*")
COMMAND = re.compile(r"[a-z][a-z0-9-]*")
OBJECT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
MODULE = re.compile(rf"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*|{OBJECT.pattern}")


def require(value: object, pattern: re.Pattern[str], what: str, shape: str) -> None:
    """Refuses what does not have a form.

    Raises:
        ArgumentError: says what it is and what it must look like.
    """
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ArgumentError(f"{what} is {value!r}; it must look like {shape}")
