"""The completion script of a shell, made by shtab from the parsers of all commands."""

from __future__ import annotations

import argparse
from typing import Any

from estimator_core.cli import command_names, command_parser
from estimator_core.plugins import default_plugins

SHELLS = ("bash", "zsh", "fish")


def completion_script(shell: str) -> str:
    """Returns a script that completes commands, options, choices and files of `estimator`.

    Args:
        shell: "bash", "zsh" or "fish".

    Example:
        >>> "checkpoints" in completion_script("bash")
        True
    """
    import shtab

    return str(shtab.complete(_whole_parser(), shell))


def _whole_parser() -> argparse.ArgumentParser:
    """Returns one parser in which every command is a sub-command."""
    whole = command_parser()
    commands = whole.add_subparsers(metavar="COMMAND")
    for name, summary in command_names().items():
        if ":" in name:  # two commands share a name, and `:` ends a word in every shell
            continue
        one = command_parser(name)
        _complete_files(one)
        commands.add_parser(name, parents=[one], add_help=False, help=_plain(summary))
    return whole


def offered(kind: str) -> list[str]:
    """Returns the names of a kind that can be made from a name and arguments, without those that need a program.

    Example:
        >>> "stop_at_step" in offered("hook")
        True
    """
    plugins = default_plugins()
    names = (name for name in plugins.names(kind) if ":" not in name)  # `:` ends a word in every shell
    return [name for name in names if not plugins.find(kind, name).component.needs]


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Completes paths for arguments whose names suggest a path, and names for options that are named after a kind."""
    import shtab

    actions: list[Any] = parser._actions  # pyright: ignore[reportPrivateUsage] # noqa: SLF001 - as shtab reads them
    for action in actions:
        if isinstance(action.choices, dict):
            for below in action.choices.values():
                _complete_files(below)
            continue
        kind = action.option_strings[-1].removeprefix("--") if action.option_strings else ""
        if action.metavar == "NAME" and action.choices is None and kind in default_plugins().kinds():
            action.choices = offered(kind)
        told = f"{action.metavar or action.dest}".upper()
        if "DIR" in told:
            action.complete = shtab.DIRECTORY
        elif "FILE" in told or action.dest in ("output", "input", "page"):
            action.complete = shtab.FILE


def _plain(text: str) -> str:
    """Returns a summary without characters that a shell would expand."""
    return text.replace("`", "'").replace("$", "")
