"""The completion script of a shell, made by shtab from the parsers of all commands."""

from __future__ import annotations

import argparse
from typing import Any

from estimator_core.cli import command_names, command_parser

SHELLS = ("bash", "zsh", "fish")


def completion_script(shell: str) -> str:
    """A script that completes commands, options, choices and files of `estimator`.

    Args:
        shell: "bash", "zsh" or "fish".

    Example:
        >>> "checkpoints" in completion_script("bash")
        True
    """
    import shtab

    return str(shtab.complete(_whole_parser(), shell))


def _whole_parser() -> argparse.ArgumentParser:
    """One parser in which every command is a sub-command."""
    whole = command_parser()
    commands = whole.add_subparsers(metavar="COMMAND")
    for name, summary in command_names().items():
        if ":" in name:  # two commands share a name: `:` ends a word in every shell
            continue
        one = command_parser(name)
        _complete_files(one)
        commands.add_parser(name, parents=[one], add_help=False, help=_plain(summary))
    return whole


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Completes paths for arguments whose names suggest a path."""
    import shtab

    actions: list[Any] = parser._actions  # pyright: ignore[reportPrivateUsage] # noqa: SLF001 - as shtab reads them
    for action in actions:
        if isinstance(action.choices, dict):
            for below in action.choices.values():
                _complete_files(below)
            continue
        told = f"{action.metavar or action.dest}".upper()
        if "DIR" in told:
            action.complete = shtab.DIRECTORY
        elif "FILE" in told or action.dest in ("output", "input", "page"):
            action.complete = shtab.FILE


def _plain(text: str) -> str:
    """A summary without characters that a shell would expand."""
    return text.replace("`", "'").replace("$", "")
