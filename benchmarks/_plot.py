"""Plots of measured ratios with their intervals and targets, from the JSON that workloads write.

    python benchmarks/_plot.py OUTPUT_FOLDER RESULTS_FOLDER

Draws RESULTS_FOLDER/NAME.json as OUTPUT_FOLDER/NAME.svg, and every ratio that has a target, of all workloads, as
OUTPUT_FOLDER.svg. The same results produce the same bytes. It needs only the standard library.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

ROW, LEFT, WIDTH, RIGHT = 22, 430, 420, 140
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
MET, OPEN, MISSED, NO_TARGET = "#117733", "#cc8800", "#bb2233", "#4477aa"
VERDICTS = {MET: "met", OPEN: "interval holds the target", MISSED: "missed", NO_TARGET: "no target"}


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis that includes all values, and 1."""

    ticks: tuple[float, ...]

    @classmethod
    def of(cls, values: list[float]) -> Axis:
        """Returns the axis whose ticks enclose the values."""
        low, high = min([0.5, *values]), max([2.0, *values])
        first = max((index for index, tick in enumerate(TICKS) if tick <= low), default=0)
        last = min((index for index, tick in enumerate(TICKS) if tick >= high), default=len(TICKS) - 1)
        return cls(TICKS[first : last + 1])

    def across(self, ratio: float) -> float:
        """Returns the position of a ratio. A ratio beyond the last tick is drawn at that tick."""
        low, high = self.ticks[0], self.ticks[-1]
        return LEFT + WIDTH * math.log(min(max(ratio, low), high) / low) / math.log(high / low)


def verdict(result: dict[str, Any]) -> str:
    """Returns the colour of a row: whether its whole interval, a part of it, or no part meets the target."""
    target = result["target"]
    if target is None:
        return NO_TARGET
    good = [result[key] <= target if result["smaller_is_better"] else result[key] >= target for key in ("low", "high")]
    return MET if all(good) else OPEN if any(good) else MISSED


def text(x: float, y: float, content: str, *, anchor: str = "start", **attributes: str) -> str:
    """Returns text at a position."""
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(content)}</text>\n'


def row(result: dict[str, Any], y: int, axis: Axis) -> str:
    """Returns one comparison: its name, interval and median, and a bar at the target."""
    low, middle, high = (axis.across(result[key]) for key in ("low", "ratio", "high"))
    colour, target, figures = verdict(result), result["target"], f"{result['ratio']:.3g}"
    parts = [
        text(LEFT - 10, y + 4, f"{result['name']} / {result['reference']}", anchor="end"),
        f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{colour}" stroke-width="5" opacity="0.45"/>\n',
        f'<circle cx="{middle:.1f}" cy="{y}" r="4" fill="{colour}"/>\n',
    ]
    if target is not None:
        x = axis.across(target)
        parts.append(f'<path class="target" d="M{x:.1f} {y - 8}V{y + 8}" stroke="#222222" stroke-width="2"/>\n')
        sign = "\u2264" if result["smaller_is_better"] else "\u2265"
        figures += f"  ({sign} {target:g})"
    return "".join([*parts, text(LEFT + WIDTH + 10, y + 4, figures, fill=colour, font_weight="bold")])


def plot(tables: list[dict[str, Any]]) -> str:
    """Returns the SVG of tables, one below the other, over the lines of one axis."""
    results = [result for table in tables for result in table["results"]]
    values = [result[key] for result in results for key in ("low", "high", "target")]
    axis = Axis.of([value for value in values if value is not None])
    parts: list[str] = []
    y = ROW
    for table in tables:
        parts.append(text(10, y + 4, table["title"], font_weight="bold"))
        y += ROW
        for result in table["results"]:
            parts.append(row(result, y, axis))
            y += ROW
        for note in table["notes"]:
            parts.append(text(30, y + 4, note, fill="#555555"))
            y += ROW
    lines: list[str] = []
    for tick in axis.ticks:
        x, colour = axis.across(tick), "#222222" if tick == 1 else "#cccccc"
        lines.append(f'<path d="M{x:.1f} {ROW}V{y}" stroke="{colour}"/>\n')
        parts.append(text(x, y + 14, f"{tick:g}", anchor="middle"))
    used = {verdict(result) for result in results}
    for index, colour in enumerate(colour for colour in VERDICTS if colour in used):
        x = 200 + 200 * index
        parts.append(f'<circle cx="{x}" cy="{y + 32}" r="4" fill="{colour}"/>\n')
        parts.append(text(x + 8, y + 36, VERDICTS[colour]))
    size = f'width="{LEFT + WIDTH + RIGHT}" height="{y + 2 * ROW + 6}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{"".join(lines)}{"".join(parts)}</svg>\n'
    )


def draw_all(output: Path, results: Path) -> list[Path]:
    """Draws every workload of a folder and the overall plot. Returns the paths of the written files."""
    output.mkdir(parents=True, exist_ok=True)
    written, with_targets = [], []
    for file in sorted(results.glob("*.json")):
        tables = json.loads(file.read_text())["tables"]
        written.append(output / f"{file.stem}.svg")
        written[-1].write_text(plot(tables), encoding="utf-8")
        for table in tables:
            kept = [result for result in table["results"] if result["target"] is not None]
            with_targets += [{**table, "results": kept, "notes": []}] if kept else []
    written.append(output.with_suffix(".svg"))
    written[-1].write_text(plot(with_targets), encoding="utf-8")
    return written


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(*draw_all(Path(sys.argv[1]), Path(sys.argv[2])), sep="\n")
