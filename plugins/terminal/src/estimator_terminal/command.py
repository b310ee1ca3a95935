"""The contract of components of the kind `command`."""

from __future__ import annotations

import argparse
from typing import Protocol, runtime_checkable


@runtime_checkable
class CommandLine(Protocol):
    """A sub-command of `estimator`. Its docstring is its description.

    Errors of the user are `ArgumentError` (exit status 2), other expected ones `EstimatorError` (exit status 1).

    Example:
        >>> class Greet:
        ...     def configure(self, parser):
        ...         parser.add_argument("name", help="whom")
        ...
        ...     def run(self, args):
        ...         print("hello", args.name)
        ...         return 0
        >>> isinstance(Greet(), CommandLine)
        True
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Adds the arguments to the `parser` of the sub-command, an `argparse.ArgumentParser`."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Does the work and returns the exit status.

        Args:
            args: the parsed arguments that `configure` added.

        Raises:
            ArgumentError: an argument of the user is wrong.
        """
        ...
