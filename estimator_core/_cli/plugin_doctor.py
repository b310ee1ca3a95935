"""`estimator plugins doctor NAME`: the checks of `PluginSuite` on an installed plugin, in words."""

from __future__ import annotations

import sys

from estimator_core._plugins import Kind, default_plugins
from estimator_core.testing.plugin_checks import CHECKS, examine_plugin


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
    kinds = default_plugins().kinds()
    suites = sorted({_suite(kinds[component.kind]) for component in record.components})
    if suites:
        print(f"  Its components are proved by its own tests, with {', '.join(suites)}.")
    return int(faulty)


def _suite(kind: Kind) -> str:
    return kind.suite if ":" in kind.suite else f"{kind.suite} of estimator_core.testing"
