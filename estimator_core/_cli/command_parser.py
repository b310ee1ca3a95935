"""The parser of every command. Errors are one line with a suggestion. Options of all commands may be anywhere."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, NoReturn

from estimator_core._plugins import settings
from estimator_core._plugins.discovery import installed_packages
from estimator_core.errors import ArgumentError


def add_every(group: argparse._ArgumentGroup, *flags: str, **given: Any) -> None:  # pyright: ignore[reportPrivateUsage]
    """Adds an option of every command, under a name that differs from the options of each command."""
    given.setdefault("dest", "every_" + flags[-1].removeprefix("--").replace("-", "_"))
    group.add_argument(*flags, **given)


def add_plugin_switches(parser: argparse.ArgumentParser, *, shown: bool) -> None:
    """Adds `--plugins`, `--block-plugin`, `--locked`, `--no-plugins`, `--strict-plugins` and `--plugin-option`."""
    group = parser.add_argument_group("plugins", argument_default=argparse.SUPPRESS)
    switches: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("--plugins", f"load only these ({settings.ONLY})", {"metavar": "A,B"}),
        ("--block-plugin", f"load all but this one ({settings.BLOCK})", {"metavar": "NAME", "action": "append"}),
        ("--locked", f"refuse plugins not in {settings.LOCK_FILE} ({settings.LOCK})", {"action": "store_true"}),
        ("--no-plugins", f"load no plugin ({settings.NO_AUTOLOAD}=1)", {"action": "store_true"}),
        ("--strict-plugins", f"treat a broken plugin as an error ({settings.STRICT}=1)", {"action": "store_true"}),
        ("--plugin-option", "set an option of a plugin", {"metavar": "PLUGIN.NAME=VALUE", "action": "append"}),
    )
    for flag, text, given in switches:
        add_every(group, flag, help=text if shown else argparse.SUPPRESS, **given)


def plugin_variables(args: argparse.Namespace) -> dict[str, str]:
    """Returns the environment variables of the plugin options, so that processes of a command use the same plugins."""
    given = vars(args)
    changes: dict[str, str] = {}
    if "every_plugins" in given:
        changes[settings.ONLY] = args.every_plugins
    if "every_block_plugin" in given:
        changes[settings.BLOCK] = ",".join(filter(None, [os.environ.get(settings.BLOCK, ""), *args.every_block_plugin]))
    if "every_no_plugins" in given:
        changes |= {settings.NO_AUTOLOAD: "1", settings.ONLY: ""}
    if "every_locked" in given:
        changes[settings.LOCK] = os.environ.get(settings.LOCK) or settings.LOCK_FILE
    if "every_strict_plugins" in given:
        changes[settings.STRICT] = "1"
    for text in given.get("every_plugin_option", ()):
        changes |= dict([_option(text)])
    if changes:
        changes[settings.SWITCHED] = ",".join([*changes, os.environ.get(settings.SWITCHED, "")])
    return changes


@contextmanager
def changed_environment(changes: Mapping[str, str]) -> Generator[None]:
    """Sets variables inside the block, while a command runs."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    plugin, dot, option = name.rpartition(".")  # the name of a distribution may have dots
    if not (equals and dot and plugin and option):
        raise ArgumentError(f"--plugin-option {text!r}: write PLUGIN.NAME=VALUE, such as acme-tracker.url=host:8080")
    return settings.option_variable(plugin, option), value


#: Set to "1" by --quiet, for progress displays here and in processes that the command starts.
QUIET = "ESTIMATOR_QUIET"


@contextmanager
def applied(args: argparse.Namespace) -> Generator[None]:
    """Applies the given options. Restores the environment afterwards."""
    given = vars(args)
    changes = plugin_variables(args)
    if "every_log_level" in given:
        _log(args.every_log_level)
        changes[QUIET] = "1" if args.every_log_level in ("warning", "error") else ""
    if "every_no_color" in given:
        changes["NO_COLOR"] = "1"
    with changed_environment(changes):
        yield


def show_lines_of(command: object) -> None:
    """Shows the log of a command like that of the core. The command may be in another package than its plugin."""
    package = str(getattr(command, "__name__", type(command).__module__)).partition(".")[0]
    logging.getLogger(package).setLevel(logging.getLogger("estimator_core").level)


def _log(level: str) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    for name in ("estimator_core", *installed_packages()):  # the lower libraries log for their own developers
        logging.getLogger(name).setLevel(level.upper())


WRONG_USAGE = 2


class CommandParser(argparse.ArgumentParser):
    """A parser with the options of all commands. An option of the command itself replaces one of them.

    Parsers of sub-commands, which argparse creates with the same class, have them too.

    Args:
        **given: see `argparse.ArgumentParser`.

    Example:
        >>> CommandParser(prog="estimator run").parse_args(["--quiet"]).every_log_level
        'warning'
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**given, conflict_handler="resolve")
        if "-" in self.prefix_chars:
            add_display_options(self)
            add_plugin_switches(self, shown=False)

    def error(self, message: str) -> NoReturn:
        """Ends the process with one line and the exit code of wrong usage."""
        self.exit(WRONG_USAGE, f"{self.prog}: error: {message}{self._hint(message)} (see {self.prog} --help)\n")

    def options(self) -> list[str]:
        """Returns the option strings here and in sub-commands."""
        return [*self._option_string_actions, *(option for _, parser in self._below() for option in parser.options())]

    def _below(self) -> list[tuple[str, CommandParser]]:
        """Returns the sub-commands with their names."""
        choices = (action.choices for action in self._actions if isinstance(action.choices, dict))
        every = (one for found in choices for one in found.items())
        return [(name, parser) for name, parser in every if isinstance(parser, CommandParser)]

    def _hint(self, message: str) -> str:
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if unknown:
            word = unknown[1].partition("=")[0]
            takers = [name for name, parser in self._below() if word in parser.options()]
            if takers:
                return f"; it is an option of: {', '.join(takers)}"
            near = [one for one in get_close_matches(word, self.options(), n=2) if one != word][:1]
        elif choice:
            near = get_close_matches(choice[1], re.findall(r"[\w.-]+", choice[2]), n=1)
        else:
            near = []
        return f"; did you mean {near[0]}?" if near else ""


def add_display_options(parser: argparse.ArgumentParser) -> None:
    """Adds the output options of every command. An option that is not given does not appear in the result."""
    group = parser.add_argument_group("options of every command", argument_default=argparse.SUPPRESS)
    level: dict[str, Any] = {"dest": "every_log_level", "action": "store_const"}
    add_every(group, "--debug", action="store_true", help="show the traceback of an error")
    add_every(group, "--log-level", choices=["debug", "info", "warning", "error"], help="what to log (default: info)")
    add_every(group, "-v", "--verbose", **level, const="debug", help="--log-level debug")
    add_every(group, "-q", "--quiet", **level, const="warning", help="no progress, warnings only")
    add_every(group, "--no-color", action="store_true", help="no colors, like the variable NO_COLOR")
