"""The faults of a configuration, each with its place and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from estimator_core.errors import ArgumentError
from estimator_runs.configuration.layers import KeyPath, Origin, Resolved, name_of


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A fault of a configuration.

    Args:
        origin: the origin of the value.
        key: the full key; empty for the file as a whole.
        text: the fault, and the correction to write.
    """

    origin: Origin
    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.key}: {self.text}" if self.key else f"{self.origin}: {self.text}"


class ConfigurationError(ArgumentError):
    """A configuration cannot be used. The message has a line for every fault.

    Args:
        problems: the faults, at least one.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[type[ConfigurationError], tuple[Sequence[Problem]]]:
        return ConfigurationError, (self.problems,)


def refused(origin: Origin, text: str) -> ConfigurationError:
    """Returns the error about a file as a whole, or about a place in it that has no key yet."""
    return ConfigurationError([Problem(origin=origin, key="", text=text)])


def at(resolved: Resolved, path: KeyPath, text: str) -> Problem:
    """Returns a problem with the value of a key."""
    return Problem(origin=resolved.origin(path), key=name_of(path), text=text)
