"""Entry point of `estimator`: finds and runs the sub-command, and converts errors to exit codes.

A command is a module with `configure(parser)`, which adds its arguments, and `run(args) -> int`, which does the work
and returns the exit code. Its docstring is its description. `COMMANDS` lists the commands of the core. Plugins declare
theirs as `Command` records of the same form. A module is imported only when its command runs, so `estimator --help`
stays fast.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import re
import select
import sys
from collections.abc import Generator, Sequence
from difflib import get_close_matches
from typing import Any, TextIO, cast

from estimator_core._cli.command_parser import WRONG_USAGE, CommandParser, add_plugin_switches, applied
from estimator_core._cli.run_module import module_parser, run_parsed
from estimator_core._plugins.records import Command
from estimator_core.errors import (
    ArgumentError,
    ArgumentTypeError,
    EstimatorError,
    PluginError,
    PluginLookupError,
    PreemptedError,
)

COMMANDS = tuple(
    Command(name=name, target=f"estimator_core._cli.{name}", summary=summary)
    for name, summary in (
        ("audit", "Check a model_dir against its journal, and repair what an interrupted run left."),
        ("checkpoints", "List, inspect and compare checkpoints."),
        ("plugins", "List installed plugins, or examine one: plugins doctor NAME."),
    )
)

FAILED, CAN_BE_RESUMED, INTERRUPTED = 1, 75, 130
#: Modules whose errors docs/errors.md explains by name.
_CATALOGUE = ("estimator_core.errors", "estimator_core._storage.contract", "estimator_core._journal.entries")
#: Errors of a file system -> the heading in docs/errors.md, and the remedy.
_REFUSED = {
    errno.ENOSPC: ("StorageFullError", "Free some space, then start the same command again."),
    errno.EDQUOT: ("StorageFullError", "Free some space, then start the same command again."),
    errno.EROFS: ("StorageDeniedError", "Use a directory that can be written."),
    errno.EACCES: ("StorageDeniedError", "Change its permissions, or use another path."),
    errno.ENAMETOOLONG: ("ArgumentError", "Use a shorter path."),
}
#: Words that users may type, with the right command.
_OTHER_WORDS = {"train": "run", "fit": "run", "eval": "evaluate", "test": "evaluate", "score": "predict"}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 done, 1 failed, 2 wrong usage, 75 stopped early and can be resumed.

    Args:
        argv: the arguments after `estimator`. None: those of the process.

    Example:
        >>> main(["--version"])
        estimator-core 0.1.0
        0
    """
    parser = _parser()
    args = parser.parse_args(_at_home(sys.argv[1:] if argv is None else argv))
    with contextlib.ExitStack() as effects, _quiet_without_reader():
        effects.callback(_flush)
        if args.version:
            from estimator_core._plugins.discovery import core_version

            print(f"estimator-core {core_version()}")
            return 0
        try:
            effects.enter_context(applied(args))
        except ArgumentError as error:
            parser.error(str(error))
        return _guarded(args)
    return FAILED  # the reader of the output has closed it, so nothing more is written


def _at_home(words: Sequence[str]) -> list[str]:
    """Returns the arguments with `~` expanded, which shells do not expand in `--option=~/path`.

    Arguments after `--` do not change.
    """
    count = list(words).index("--") if "--" in words else len(words)
    found = (re.fullmatch(r"(--[a-z0-9-]+=|)(~/.*)", word, re.DOTALL) or word for word in words[:count])
    own = [one if isinstance(one, str) else one[1] + os.path.expanduser(one[2]) for one in found]
    return [*own, *words[count:]]


def command_names() -> dict[str, str]:
    """Returns every command with its summary: those of the core, then those of plugins.

    Example:
        >>> "plugins" in command_names()
        True
    """
    from estimator_core._plugins import default_plugins

    own = {command.name: command.summary for command in COMMANDS}
    rows = default_plugins().commands().listed()
    return own | {  # the name of a command of the core always means that command
        f"{record.owner}:{name}" if name in own else name: f"{command.summary} ({record.label})"
        for name, command, record in rows
    }


def command_parser(name: str = "") -> argparse.ArgumentParser:
    """Returns the parser of a command, for code that parses or completes command lines.

    Args:
        name: the name of the command. "": the options before the command.

    Raises:
        PluginLookupError: there is no such command.

    Example:
        >>> command_parser("plugins").parse_args(["--kind", "head"]).kind
        'head'
    """
    if not name:
        return _options()
    return module_parser(_module(find_command(name)), f"estimator {name}")


def find_command(name: str) -> Command:
    """Returns the record of a command.

    A command of the core is found by name, without loading plugins. Otherwise plugins are searched.

    Raises:
        PluginLookupError: there is no such command, or several plugins provide it. The message names the package of a
            known command.
    """
    own = {command.name: command for command in COMMANDS}
    if name in own:
        return own[name]
    from estimator_core._plugins import default_plugins

    table = default_plugins().commands()
    meant = get_close_matches(name, _OTHER_WORDS, n=1, cutoff=0.8)
    if meant and name not in {row[0] for row in table.listed()}:
        raise PluginLookupError(
            f"there is no command {name!r}. Did you mean {_OTHER_WORDS[meant[0]]}? `estimator --help` lists all."
        )
    return table.find(name, others=own)


def _module(command: Command) -> Any:
    """Returns the definition of a command: its module, or the result of calling its target."""
    from estimator_core._plugins.plugin_code import import_target

    try:
        found = import_target(command.target)
    except ImportError as error:
        why = f"{type(error).__name__}: {error}"
        raise PluginError(f"command {command.name!r}: {command.target} cannot be imported: {why}") from error
    found = found() if ":" in command.target else found
    for member in ("configure(parser)", "run(args)"):
        if not hasattr(found, member.partition("(")[0]):
            raise PluginError(f"command {command.name!r}: {command.target} has no {member}")
    return found


def _guarded(given: argparse.Namespace) -> int:
    program, debug = f"estimator {given.command or ''}".rstrip(), given.every_debug
    try:
        if given.help or given.command is None:
            print(_parser().format_help() + _command_list())
            return 0 if given.help else WRONG_USAGE
        module = _module(find_command(given.command))
        args = module_parser(module, program).parse_args(_with_json(given) if given.json else given.arguments)
        debug = debug or "every_debug" in vars(args)
        return run_parsed(module, args)
    except PreemptedError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return CAN_BE_RESUMED
    except EstimatorError as error:
        if debug:
            raise
        of_the_words = isinstance(error, (ArgumentError, ArgumentTypeError, PluginLookupError))
        told = re.sub(r"\n(?! )", "\n  ", str(error))  # all lines after the first belong to the message
        print(f"{program}: error: {told}{'' if of_the_words else f' [{_heading(error)}]'}", file=sys.stderr)
        return WRONG_USAGE if of_the_words else FAILED
    except OSError as error:
        told = _refusal(error)
        if debug or told is None:
            raise
        print(f"{program}: error: {told}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _refusal(error: OSError) -> str | None:
    """Returns the message for what a file system refuses; None for any other error, whose traceback is needed."""
    heading, cure = _REFUSED.get(error.errno or 0, ("", ""))
    paths = " -> ".join(str(path) for path in (error.filename, error.filename2) if path is not None)
    if not heading or not (paths or heading == "StorageFullError"):  # no path: a port
        return None
    told = f"{paths}: {error.strerror}" if paths else f"{error.strerror} (--debug shows where)"
    told = f"{told}. {cure}" if error.strerror == os.strerror(error.errno or 0) else told  # else it says its own
    return "\n  ".join([f"{told} [{heading}]", *getattr(error, "__notes__", ())])  # a note names the hook, for example


@contextlib.contextmanager
def _quiet_without_reader() -> Generator[None]:
    """Ends the block silently if the reader of the output has closed it.

    Broken pipes of workers or servers stay errors.
    """
    try:
        yield
    except BrokenPipeError:
        if not any(map(_has_lost_its_reader, (sys.stdout, sys.stderr))):
            raise


def _has_lost_its_reader(stream: TextIO | None) -> bool:
    output = select.poll()
    try:
        output.register(cast(TextIO, stream).fileno(), 0)  # poll always reports errors
    except (AttributeError, ValueError, OSError):  # closed, or an object of a test
        return False
    return any(event & select.POLLERR for _, event in output.poll(0))


def _flush() -> None:
    """Flushes the output, while a failure can still change the exit code."""
    try:
        if sys.stdout:  # None if it is closed
            sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        if not isinstance(error, BrokenPipeError):
            print(f"estimator: error: the output cannot be written: {error.strerror}", file=sys.stderr)
        sys.exit(FAILED)


def _heading(error: EstimatorError) -> str:
    """Returns the heading in docs/errors.md for an error: the nearest of its public classes."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ in _CATALOGUE)


def _with_json(given: argparse.Namespace) -> list[str]:
    """Adds `--json` if the command or its sub-command accepts it: after its own arguments, before a command of the
    user.
    """
    words: list[str] = given.arguments
    end = words.index("--") if "--" in words else len(words)
    return [*words[:end], "--json", *words[end:]]


def _parser() -> CommandParser:
    parser = _options()
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(every_debug=False, every_log_level="info")
    return parser


def _options() -> CommandParser:
    parser = CommandParser(
        prog="estimator",
        usage="estimator [options] COMMAND [arguments]",
        description="Train, evaluate, predict, export and serve estimators on JAX.",
        add_help=False,
    )
    add_plugin_switches(parser, shown=True)
    parser.add_argument("-h", "--help", action="store_true", help="show this text")
    parser.add_argument("--version", action="store_true", help="show the version")
    parser.add_argument("--json", action="store_true", help="print JSON, if the command supports it")
    return parser


def _command_list() -> str:
    from estimator_core._plugins import default_plugins

    plugins = default_plugins()
    rows = command_names()
    width = max(map(len, rows))
    lines = [
        "",
        "commands (estimator COMMAND --help shows more):",
        *(f"  {name:<{width}}  {text}" for name, text in rows.items()),
    ]
    failed = [record.label for record in plugins.records() if record.status == "failed"]
    if failed:
        lines += ["", f"plugins that failed to load: {', '.join(failed)} (see estimator plugins)"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
