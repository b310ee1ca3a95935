"""The results of a workload: tables on the screen, and JSON that `_plot.py` draws."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from _side_by_side import Comparison

Table = dict[str, Any]


def report(
    title: str,
    results: Sequence[Comparison],
    *,
    steps: int,
    targets: Mapping[tuple[str, str], float] | None = None,
    rows: int | None = None,
    unit: tuple[str, float] | None = None,
    notes: Sequence[str] = (),
) -> Table:
    """Prints a table, and returns it for `write`.

    Args:
        title: the title of the table.
        results: the lines of the table.
        steps: the number of steps of a round.
        targets: the value that a ratio should reach, or not exceed if smaller is better, by `(contestant, reference)`.
            Lines without a target are for orientation.
        rows: the number of examples of a round, if rows per second matter.
        unit: the unit of the two medians, and the number of units in one second or byte. Default: microseconds per
            step.
        notes: the further results, one line each.
    """
    wanted = dict(targets or {})
    unit_name, scale = unit or ("us/step", 1e6 / steps)
    machine = platform.processor() or platform.machine()
    print(f"\n{title} ({max((item.rounds for item in results), default=0)} rounds of {steps} steps; {machine})")
    wide = max([33, *(len(name) for item in results for name in (item.name, item.reference))]) + 1
    print(
        f"{'contestant':<{wide}} {'reference':<{wide}} {'ratio':>7} {'95% interval':>16} {'target':>7} "
        f"{unit_name:>9} {'reference':>9}"
    )
    for item in results:
        target = wanted.get((item.name, item.reference))
        sign = "<=" if item.smaller_is_better else ">="
        print(
            f"{item.name:<{wide}} {item.reference:<{wide}} {item.ratio:7.3f}   [{item.low:.3f}, {item.high:.3f}] "
            f"{'' if target is None else f'{sign} {target:g}':>7} "
            f"{item.median * scale:9.4g} {item.reference_median * scale:9.4g}"
        )
    for name, reference in sorted(wanted.keys() - {(item.name, item.reference) for item in results}):
        print(f"not measured: {name} / {reference}")  # the peer is absent
    medians = {item.reference: item.reference_median for item in results}
    medians |= {item.name: item.median for item in results}
    rates = {} if rows is None else {name: rows / value for name, value in sorted(medians.items())}
    for line in [*(f"{name:<34} {rate:12,.0f} rows/s" for name, rate in rates.items()), *notes]:
        print(line)
    return {
        "title": title,
        "steps": steps,
        "results": [{**asdict(item), "target": wanted.get((item.name, item.reference))} for item in results],
        "rows_per_second": rates,
        "notes": list(notes),
    }


def write(output: Path | None, *tables: Table) -> None:
    """Writes the tables of a workload as JSON, if requested."""
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps({"environment": environment(), "tables": tables}, indent=1) + "\n")


def environment() -> dict[str, Any]:
    """Returns the conditions on which the figures depend besides the code."""
    from importlib.metadata import version  # not at the top: start_up.py times processes that import this file

    return {
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "jax": version("jax"),
    }
