"""A plot of measured ratios with their intervals, from the JSON that benchmarks write.

python benchmarks/_plot.py OUTPUT.svg FILE.json ...
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

ROW, LEFT, WIDTH, LOW, HIGH = 22, 430, 420, 0.1, 20.0


def across(ratio: float) -> float:
    """Where a ratio stands on the logarithmic axis."""
    inside = min(max(ratio, LOW), HIGH)
    return LEFT + WIDTH * math.log(inside / LOW) / math.log(HIGH / LOW)


def row(result: dict[str, Any], y: int) -> str:
    """One comparison: its name, interval and median."""
    name = escape(f"{result['name']} / {result['reference']}")
    low, middle, high = (across(result[key]) for key in ("low", "ratio", "high"))
    return (
        f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{name}</text>'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" stroke="#4477aa" stroke-width="5" opacity="0.45"/>'
        f'<circle cx="{middle:.1f}" cy="{y}" r="4" fill="#4477aa"/>'
        f'<text x="{LEFT + WIDTH + 10}" y="{y + 4}">{result["ratio"]:.2f}</text>'
    )


def plot(files: list[Path]) -> str:
    """The SVG."""
    parts: list[str] = []
    y = ROW
    for file in files:
        content = json.loads(file.read_text())
        parts.append(f'<text x="10" y="{y + 4}" font-weight="bold">{escape(content["title"])}</text>')
        y += ROW
        for result in content["results"]:
            parts.append(row(result, y))
            y += ROW
    for tick in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0):
        x, colour = across(tick), "#222222" if tick == 1 else "#cccccc"
        parts.insert(0, f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{ROW}" y2="{y}" stroke="{colour}"/>')
        parts.append(f'<text x="{x:.1f}" y="{y + 14}" text-anchor="middle">{tick:g}</text>')
    size = f'width="{LEFT + WIDTH + 70}" height="{y + 2 * ROW}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(plot([Path(name) for name in sys.argv[2:]]))
