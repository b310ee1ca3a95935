"""Examine an installed plugin: forms of an older core, missing parts, heavy imports, and collisions of names."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_core.plugins import Kind, default_plugins
from estimator_testing.migration import lacking, migrate_file, source_files
from estimator_testing.plugin_checks import (
    CHECKS,
    check_requirements_are_met,
    examine_plugin,
    installed_module,
    names_to_examine,
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator plugins doctor`."""
    parser.add_argument("name", help="entry-point name, or distribution name for all of its entry points")
    parser.add_argument("--fix", action="store_true", help="rewrite code for an older core, and print a diff")
    parser.add_argument("--json", action="store_true", help="print JSON, and the lines to standard error")
    parser.add_argument(
        "--also", type=Path, nargs="+", default=[], metavar="PATH", help="more files or folders, such as its tests"
    )


def run(args: argparse.Namespace) -> int:
    """Searches the plugin's sources for old forms, then examines the plugin as it is installed."""
    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():
        found = _examined(args)
    if args.json:
        print(json.dumps(found))
    return int(any(found.get(name) for name in ("old", "lacks", "faults")))


def _examined(args: argparse.Namespace) -> dict[str, Any]:
    absent = [str(path) for path in args.also if not path.exists()]
    if absent:
        raise ArgumentError(f"--also: there is no file or folder {', '.join(absent)}.")
    names = names_to_examine(args.name)
    found: dict[str, Any] = {"old": [], "lacks": []}
    packages = {module.partition(".")[0]: (module, owner) for module, owner in map(installed_module, names)}
    also: list[Path] = args.also
    for module, distribution in packages.values():
        found["old"] += show_old_forms(module, also, fix=args.fix)
        found["lacks"] += show_lacking(module, distribution, also, told=found["lacks"])
        also = []  # examined only once
    if found["old"] and args.fix:
        print("Rewritten as far as possible; run the doctor again without --fix.")
        return found
    for one in map(examine, names):  # the numbers and lists of all entry points are combined
        found |= {key: found[key] + value if key in found and key != "plugin" else value for key, value in one.items()}
    return found


def show_old_forms(module: str, also: list[Path], *, fix: bool) -> list[dict[str, Any]]:
    """Prints, and returns, each old hook member, moved path and private use with its new form.

    Args:
        module: the module of the plugin's entry point.
        also: the further files or folders.
        fix: whether to rewrite the forms that can be rewritten, and print the diff.
    """
    found: list[dict[str, Any]] = []
    for path in source_files(module, also):
        migrated = migrate_file(path)
        for one in migrated.findings:
            found.append(
                {"file": str(path), "line": one.line, "old": one.old, "new": one.new, "can_be_rewritten": one.fixable}
            )
            print(f"{path}:{one.line}: {one.old} -> {one.new}{'' if one.fixable else ' (not rewritten)'}")
        if fix and migrated.after != migrated.before:
            path.write_text(migrated.after, encoding="utf-8")
            print(migrated.diff(), end="")
    return found


def show_lacking(module: str, distribution: str | None, also: list[Path], *, told: Sequence[str] = ()) -> list[str]:
    """Prints, and returns, the packages that a plugin needs because their names have left the core.

    Args:
        module: the module of the plugin's entry point.
        distribution: the distribution of the plugin, or None for a plugin without one.
        also: the further files or folders.
        told: the packages that were reported already.
    """
    missing = [] if distribution is None else lacking(distribution, source_files(module, also))
    missing = [one for one in missing if one not in told]
    for one in missing:
        print(f"{distribution} does not require {one}, which it imports from: add it (for tests, to their extra)")
    return missing


def examine(name: str) -> dict[str, Any]:
    """Prints, and returns, the facts and the faults of a plugin.

    Raises:
        ArgumentError: no such plugin is installed.
    """
    examined = examine_plugin(name)
    record = examined.record
    if not record.usable:
        print(f"{record.label}, entry point {record.name!r}: {record.status}")
        print(f"  {record.error}")
        print(record.traceback, file=sys.stderr, end="")
        unmet = list(check_requirements_are_met(examined))
        print("".join(f"  {fault}\n" for fault in unmet), end="")
        return {"plugin": record.label, "faults": [record.error, *unmet]}
    print(f"{record.label}, entry point {record.name!r}: module {record.module}")
    for report in examined.reports[:1]:
        print(f"  imported in {1e3 * report.seconds:.0f} ms by a fresh process")
    counted = {"component": record.components, "command": record.commands, "option": record.options}
    print(f"  declares {', '.join(_count(noun, len(ones)) for noun, ones in counted.items())}")
    found: list[str] = []
    for check in CHECKS:
        faults = list(check(examined))
        found += faults
        print(f"  {'FAULT' if faults else 'ok   '}  {(check.__doc__ or '').splitlines()[0]}")
        for fault in faults:
            print(f"           {fault}")
    kinds = default_plugins().kinds()
    suites = sorted({_suite(kinds[component.kind]) for component in record.components})
    if suites:
        print(f"  Its own tests check its components, with {', '.join(suites)}.")
    return {"plugin": record.label, **{f"{noun}s": len(ones) for noun, ones in counted.items()}, "faults": found}


def _count(noun: str, number: int) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _suite(kind: Kind) -> str:
    """Returns the place of the suite of a kind. A plugin's kind names the module, a kind of the core only the class."""
    return kind.suite if ":" in kind.suite else f"{kind.suite} of estimator_testing"
