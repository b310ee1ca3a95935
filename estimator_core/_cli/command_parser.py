"""The parser of every command: errors are one line with a suggestion; options of all commands stand anywhere."""

from __future__ import annotations

import argparse
import re
from difflib import get_close_matches
from typing import Any, NoReturn

from estimator_core._cli.plugin_switches import add_every, add_plugin_switches

WRONG_USAGE = 2


class CommandParser(argparse.ArgumentParser):
    """A parser that knows the options of all commands; an option of the command itself takes the place of one of them.

    Parsers of sub-commands, which argparse makes of the same class, know them too.

    Args:
        **given: as for `argparse.ArgumentParser`.

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
        """Ends the process with one line and the code of wrong usage."""
        self.exit(WRONG_USAGE, f"{self.prog}: error: {message}{self._hint(message)} (see {self.prog} --help)\n")

    def options(self) -> list[str]:
        """The words that begin an option, here or in a sub-command."""
        return [*self._option_string_actions, *(option for _, parser in self._below() for option in parser.options())]

    def _below(self) -> list[tuple[str, CommandParser]]:
        """The sub-commands by name."""
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
    """Adds what every command takes about its output; an option that is not given leaves no trace."""
    group = parser.add_argument_group("options of every command", argument_default=argparse.SUPPRESS)
    level: dict[str, Any] = {"dest": "every_log_level", "action": "store_const"}
    add_every(group, "--debug", action="store_true", help="show the traceback of an error")
    add_every(group, "--log-level", choices=["debug", "info", "warning", "error"], help="what to log (default: info)")
    add_every(group, "-v", "--verbose", **level, const="debug", help="--log-level debug")
    add_every(group, "-q", "--quiet", **level, const="warning", help="no progress, warnings only")
    add_every(group, "--no-color", action="store_true", help="no colors, as with the variable NO_COLOR")
