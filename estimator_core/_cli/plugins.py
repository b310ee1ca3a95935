"""List installed plugins with their components. `estimator plugins doctor NAME` examines one."""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from estimator_core import _moved
from estimator_core._cli.run_module import run_module
from estimator_core._plugins import default_plugins
from estimator_core._plugins.contract import HOOK_NAMES
from estimator_core._plugins.not_found import COMMANDS, known_distribution
from estimator_core._plugins.plugin_code import missing_reason
from estimator_core._plugins.records import PluginRecord
from estimator_core.errors import PluginLookupError


def plugin_rows(records: Iterable[PluginRecord], kind: str | None = None) -> list[dict[str, Any]]:
    """Returns one JSON object per plugin.

    Args:
        records: the plugins.
        kind: the kind of the components to show. Only plugins that provide or define one, or that are broken or
            blocked, are shown. None: all.
    """
    rows = [_row(record, kind) for record in records]
    return [row for row in rows if kind is None or row["provides"] or row["kinds"] or row["error"]]


def plugin_table(rows: Sequence[dict[str, Any]]) -> str:
    """Returns the rows as text: one line per plugin, followed by its components and faults."""
    head = ("name", "distribution", "version", "status", "contract", "load ms")
    table = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(head))]
    lines = [_join(head, widths)]
    for row in rows:
        lines.append(_join(_cells(row), widths))
        lines += [f"    {item['kind']} {item['name']}: {item['summary']}{_only(item)}" for item in row["provides"]]
        lines += [f"    defines kind {item['name']}: {item['contract']}" for item in row["kinds"]]
        lines += [f"    defines hook specification {name}" for name in row["specifications"]]
        lines += [f"    command {item['name']}: {item['summary']}" for item in row["commands"]]
        lines += [f"    option {item['name']} ({item['type']}): {item['help']}" for item in row["options"]]
        if row["run_hooks"]:
            lines.append(f"    takes part in every run: {', '.join(row['run_hooks'])}")
        if row["implements"]:
            lines.append(f"    implements: {', '.join(row['implements'])}")
        if row["error"]:
            lines.append(f"    {row['status']}: {row['error']}")
        lines += [f"    note: {note}" for note in row["notes"]]
    return "\n".join(line.replace("\n", "\n        ") for line in lines)  # texts of plugins may have several lines


def _row(record: PluginRecord, kind: str | None) -> dict[str, Any]:
    shown = [component for component in record.components if kind in (None, component.kind)]
    missing = [(one.kind, one.name, missing_reason(one.target)) for one in shown]
    missing += [("command", one.name, missing_reason(one.target)) for one in record.commands]
    return {
        "name": record.name,
        "distribution": record.distribution,
        "version": record.version,
        "module": record.module,
        "status": record.status,
        "contract": ".".join(map(str, record.api)) if record.api else None,
        "load_ms": round(1e3 * record.seconds, 1),
        "provides": [
            {"kind": one.kind, "name": one.name, "target": one.target, "summary": one.summary, "needs": one.needs}
            for one in shown
        ],
        "commands": [{"name": one.name, "target": one.target, "summary": one.summary} for one in record.commands],
        "options": [
            {"name": one.name, "type": one.type.__name__, "default": one.default, "help": one.help}
            for one in record.options
        ],
        "kinds": [
            {"name": one.name, "contract": one.contract, "suite": one.suite}
            for one in record.kinds
            if kind in (None, one.name)
        ],
        "specifications": list(record.specs),
        "run_hooks": [name for name in record.hooks if name in HOOK_NAMES and name not in _DECLARATIONS],
        "implements": [name for name in record.hooks if name not in HOOK_NAMES],
        "error": record.error,
        "notes": [*record.notes, *(f"{what} {name!r} cannot work: {why}" for what, name, why in missing if why)],
    }


_DECLARATIONS = {
    f"estimator_{what}" for what in ("components", "commands", "options", "capabilities", "kinds", "hookspecs")
}


def _only(item: dict[str, Any]) -> str:
    return f" (only in a program: needs {item['needs']})" if item["needs"] else ""


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    values = (row["name"], row["distribution"], row["version"], row["status"], row["contract"])
    return (*(str(value) if value else "-" for value in values), f"{row['load_ms']:.1f}")


def _join(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator plugins`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--kind", help="only plugins and components of this kind")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    # Every argument after `doctor` belongs to the doctor, including --help, so no character begins an option here.
    doctor = actions.add_parser(
        "doctor",
        help=f"examine an installed plugin (with {known_distribution(COMMANDS, 'plugin-doctor')})",
        add_help=False,
        prefix_chars="\0",
    )
    doctor.add_argument("words", nargs="*")
    for action, text in (
        ("lock", "lock the plugins that runs may use"),
        ("policy", "print the plugin policy in force, and its sources"),
    ):
        of_package = actions.add_parser(action, help=text, add_help=False, prefix_chars="\0")
        of_package.add_argument("words", nargs="*")
    explain = actions.add_parser("explain", help="show where a component comes from, or why it is not found")
    explain.add_argument("of_kind", metavar="KIND")
    explain.add_argument("name", metavar="NAME")
    explain.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Lists the plugins, or runs one of the actions."""
    if args.action in ("lock", "policy"):  # found without loading plugins, which an outdated lock would refuse
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
        plugins.names(args.kind)  # refuses an undefined kind
    rows = plugin_rows(plugins.records(), args.kind)
    print(json.dumps(rows, indent=2) if args.json else plugin_table(rows))
    return 0
