"""Entry point of `estimator`: finds the sub-command, hands over, and turns errors into exit codes.

A command is a module with `configure(parser)`, which adds its arguments, and `run(args) -> int`, which does the work
and returns the exit code. Its docstring is its description. `COMMANDS` lists the core's own; plugins declare theirs as
`Command` records of the same shape. A module is imported only when its command runs, so `estimator --help` stays fast
whatever a command needs.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
from collections.abc import Sequence

from estimator_core import _moved
from estimator_core._cli.plugin_switches import add_plugin_switches, plugin_environment
from estimator_core._cli.run_module import run_module
from estimator_core._plugins.discovery import installed_packages
from estimator_core._plugins.records import Command
from estimator_core.errors import EstimatorError, PreemptedError

COMMANDS = (
    Command(
        name="audit",
        target="estimator_core._cli.audit",
        summary="Prove that a model_dir holds what its journal says; mend what an interrupted run left.",
    ),
    Command(
        name="checkpoints",
        target="estimator_core._cli.checkpoints",
        summary="List checkpoints, look into one, compare two.",
    ),
    Command(
        name="plugins",
        target="estimator_core._cli.plugins",
        summary="List installed plugins, or examine one: plugins doctor NAME.",
    ),
)

FAILED, WRONG_USAGE, CAN_BE_RESUMED, INTERRUPTED = 1, 2, 75, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 done, 1 failed, 2 wrong usage, 75 stopped early and can be resumed.

    Args:
        argv: the words after `estimator`; None: those of the process.

    Example:
        >>> main(["--version"])
        estimator-core 0.1.0
        0
    """
    parser = _parser()
    args = parser.parse_args(argv)
    if args.version:
        print(_version())
        return 0
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    for name in ("estimator_core", *installed_packages()):  # libraries below us log for their own developers
        logging.getLogger(name).setLevel(args.log_level.upper())
    with plugin_environment(args):
        if args.help or args.command is None:
            print(parser.format_help() + _command_list())
            return 0 if args.help else WRONG_USAGE
        return _guarded(args.command, args.arguments, debug=args.debug)


def find_command(name: str) -> Command:
    """The record of a command: the core's own by name alone, without loading any plugin; else a plugin's.

    Raises:
        PluginLookupError: there is none, or several plugins give one; names the package that brings a known one.
    """
    own = {command.name: command for command in COMMANDS}
    if name in own:
        return own[name]
    from estimator_core._plugins import default_plugins

    return default_plugins().commands().find(name, others=own, known=_moved.MOVED_COMMANDS)


def _guarded(name: str, arguments: Sequence[str], *, debug: bool) -> int:
    try:
        return _run(find_command(name), name, arguments)
    except PreemptedError as error:
        print(f"estimator {name}: {error}", file=sys.stderr)
        return CAN_BE_RESUMED
    except EstimatorError as error:
        if debug:
            raise
        print(f"estimator {name}: error: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"estimator {name}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away: nothing more to say, and no traceback at exit
        return FAILED


def _run(command: Command, name: str, arguments: Sequence[str]) -> int:
    return run_module(importlib.import_module(command.target), f"estimator {name}", arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="estimator",
        usage="estimator [options] COMMAND [arguments]",
        description="Train, evaluate, predict, export and serve estimators on JAX.",
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this text")
    parser.add_argument("--version", action="store_true", help="show the version")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.add_argument(
        "--log-level", default="info", choices=["debug", "info", "warning", "error"], help="what to log (default: info)"
    )
    add_plugin_switches(parser)
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _command_list() -> str:
    from estimator_core._plugins import default_plugins

    plugins = default_plugins()
    rows = [(command.name, command.summary) for command in COMMANDS]
    rows += [(name, f"{command.summary} ({record.label})") for name, command, record in plugins.commands().listed()]
    width = max(len(name) for name, _ in rows)
    lines = [
        "",
        "commands (estimator COMMAND --help says more):",
        *(f"  {name:<{width}}  {text}" for name, text in rows),
    ]
    failed = [record.label for record in plugins.records() if record.status == "failed"]
    if failed:
        lines += ["", f"plugins that failed to load: {', '.join(failed)} (see estimator plugins)"]
    return "\n".join(lines)


def _version() -> str:
    from estimator_core._plugins.discovery import core_version

    return f"estimator-core {core_version()}"


if __name__ == "__main__":
    sys.exit(main())
