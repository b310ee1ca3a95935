"""List installed plugins with their components. `estimator plugins doctor NAME` examines one."""

from __future__ import annotations

import argparse
import importlib
import json

from estimator_core import _moved
from estimator_core._cli.plugin_table import plugin_rows, plugin_table
from estimator_core._cli.run_module import run_module
from estimator_core._plugins import default_plugins
from estimator_core._plugins.explain import COMMANDS, known_distribution
from estimator_core.errors import PluginLookupError


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator plugins`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--kind", help="only plugins and components of this kind")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    # Every word after `doctor` is the doctor's own, --help too: no character begins an option here.
    doctor = actions.add_parser(
        "doctor",
        help=f"examine an installed plugin (with {known_distribution(COMMANDS, 'plugin-doctor')})",
        add_help=False,
        prefix_chars="\0",
    )
    doctor.add_argument("words", nargs="*")
    for action, text in (
        ("lock", "write down which plugins runs may have"),
        ("policy", "print what holds, and why"),
    ):
        of_package = actions.add_parser(action, help=text, add_help=False, prefix_chars="\0")
        of_package.add_argument("words", nargs="*")
    explain = actions.add_parser("explain", help="say where a component comes from, or why it is not found")
    explain.add_argument("of_kind", metavar="KIND")
    explain.add_argument("name", metavar="NAME")
    explain.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Lists the plugins, or does one of the actions."""
    if args.action in ("lock", "policy"):  # found without a look at plugins, which a stale lock would refuse
        module, distribution = _moved.POLICY_READER
        program = f"estimator plugins {args.action}"
        command = _moved.import_moved(f"{module}.cli.{args.action}", distribution, program)
        return run_module(command, program, args.words)
    plugins = default_plugins()
    if args.action == "doctor":
        command = plugins.commands().find("plugin-doctor")
        return run_module(importlib.import_module(command.target), "estimator plugins doctor", args.words)
    if args.action == "explain":
        told = {"kind": args.of_kind, "name": args.name, "found": True, "text": ""}
        try:
            told["text"] = plugins.find(args.of_kind, args.name).describe()
        except PluginLookupError as error:
            told |= {"found": False, "text": str(error)}
        print(json.dumps(told, indent=2) if args.json else told["text"])
        return 0 if told["found"] else 1
    if args.kind is not None:
        plugins.names(args.kind)  # refuses a kind that nobody defines
    rows = plugin_rows(plugins.records(), args.kind)
    print(json.dumps(rows, indent=2) if args.json else plugin_table(rows))
    return 0
