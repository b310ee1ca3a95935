"""How many steps one dispatch runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal


def choose(asked: int | Literal["auto"], keeps_small: Callable[[], str | None]) -> int:
    """The number of steps per dispatch: what was asked for; "auto" is one until a measurement says otherwise."""
    return 1 if asked == "auto" else asked
