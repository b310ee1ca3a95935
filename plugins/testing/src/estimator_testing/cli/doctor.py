"""Examine an installed plugin: what is missing, heavy or colliding."""

from __future__ import annotations

import argparse
import sys

from estimator_core.plugins import KINDS
from estimator_testing.plugin_checks import CHECKS, examine_plugin


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator doctor`, which is also `estimator plugins doctor`."""
    parser.add_argument("name", help="entry-point name or distribution name")


def run(args: argparse.Namespace) -> int:
    """Examines the plugin."""
    return examine(args.name)


def examine(name: str) -> int:
    """Prints what is known of a plugin and what is wrong with it; returns 0 if nothing is, else 1.

    Raises:
        ArgumentError: no such plugin is installed.
    """
    examined = examine_plugin(name)
    record = examined.record
    if not record.usable:
        print(f"{record.label}, entry point {record.name!r}: {record.status}")
        print(f"  {record.error}")
        print(record.traceback, file=sys.stderr, end="")
        return 1
    print(f"{record.label}, entry point {record.name!r}: module {record.module}")
    for report in examined.reports[:1]:
        print(f"  imported in {1e3 * report.seconds:.0f} ms by a fresh process")
    print(
        f"  gives {len(record.components)} components, {len(record.commands)} commands, {len(record.options)} options"
    )
    faulty = False
    for check in CHECKS:
        faults = list(check(examined))
        faulty = faulty or bool(faults)
        print(f"  {'FAULT' if faults else 'ok   '}  {(check.__doc__ or '').splitlines()[0]}")
        for fault in faults:
            print(f"           {fault}")
    suites = sorted({KINDS[component.kind].suite for component in record.components})
    if suites:
        print(f"  Its components are proved by its own tests, with {', '.join(suites)} of estimator_testing.")
    return int(faulty)
