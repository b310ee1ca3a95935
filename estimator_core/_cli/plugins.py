"""List installed plugins with what they give; `estimator plugins doctor NAME` examines one."""

from __future__ import annotations

import argparse
import json

from estimator_core._cli.plugin_table import plugin_rows, plugin_table
from estimator_core._plugins import default_plugins


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator plugins`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--kind", help="only plugins and components of this kind")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    doctor = actions.add_parser("doctor", help="examine an installed plugin: what is missing, heavy or colliding")
    doctor.add_argument("name", help="entry-point name or distribution name")
    explain = actions.add_parser("explain", help="say where a component comes from, or why it is not found")
    explain.add_argument("of_kind", metavar="KIND")
    explain.add_argument("name", metavar="NAME")


def run(args: argparse.Namespace) -> int:
    """Lists the plugins, or does one of the actions."""
    if args.action == "doctor":
        from estimator_core._cli.plugin_doctor import examine

        return examine(args.name)
    plugins = default_plugins()
    if args.action == "explain":
        print(plugins.explain(args.of_kind, args.name))
        return 0
    if args.kind is not None:
        plugins.names(args.kind)  # refuses a kind that nobody defines
    rows = plugin_rows(plugins.records(), args.kind)
    print(json.dumps(rows, indent=2) if args.json else plugin_table(rows))
    return 0
