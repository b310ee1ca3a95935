"""Aliases that other modules import for type checkers alone."""

from collections.abc import Callable

Seconds = float | int
Loader = Callable[[], object]
