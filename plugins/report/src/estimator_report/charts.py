"""Charts as inline SVG: lines, intervals, and a matrix."""

from __future__ import annotations

import html
import math
import sys
from collections.abc import Mapping, Sequence

Points = Sequence[tuple[float, float]]
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 330, 250, 56, 14, 30, 40
_COLOURS = ("#1f5fbf", "#c2410c", "#15803d", "#7e22ce", "#0e7490", "#a16207")


def line_chart(
    title: str, lines: Mapping[str, Points], *, x: str, y: str, unit: bool = False, diagonal: bool = False
) -> str:
    """Returns a chart of lines over one x axis. Values that are not finite are counted, not drawn.

    Args:
        title: the title above the chart.
        lines: the points by name. Names are shown if there are several.
        x: the label of the horizontal axis.
        y: the label of the vertical axis.
        unit: whether both axes go from 0 to 1.
        diagonal: whether the chart has a line from (0, 0) to (1, 1).

    Example:
        >>> line_chart("loss", {"all": [(0, 1.0), (10, 0.5)]}, x="step", y="loss").count("<polyline")
        1
    """
    given = [p for line in lines.values() for p in line]
    points = [p for p in given if all(map(math.isfinite, p))]
    across = (0.0, 1.0) if unit else _span([p[0] for p in points])
    up = (0.0, 1.0) if unit else _span([p[1] for p in points])

    def at(point: tuple[float, float]) -> str:
        return f"{_across(point[0], across):.1f},{_up(point[1], up):.1f}"

    body = [_frame(title, across, up, x, y)]
    if len(points) < len(given):
        text = f"{len(given) - len(points)} of {len(given)} values are not finite"
        body.append(f'<text x="{_WIDTH - _RIGHT}" y="{_TOP + 8}" text-anchor="end">{text}</text>')
    if diagonal:
        body.append(f'<polyline points="{at((0, 0))} {at((1, 1))}" fill="none" stroke="#9aa4ae" stroke-dasharray="3"/>')
    for number, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        drawn = [p for p in line if all(map(math.isfinite, p))]
        path = " ".join(map(at, drawn))
        dashed = number >= len(_COLOURS)  # a repeated colour
        dashes = ' stroke-dasharray="6 3"' if dashed else ""
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>')
        if len(drawn) <= 40:
            body += [
                f'<circle cx="{_across(p[0], across):.1f}" cy="{_up(p[1], up):.1f}" r="2.2" fill="{colour}"/>'
                for p in drawn
            ]
        if len(lines) > 1:
            place = _HEIGHT + 6 + 15 * number
            text = f"{'- - ' if dashed else ''}{html.escape(_short(name, 44))}"
            body.append(f'<text x="{_LEFT}" y="{place}" style="fill:{colour}">{text}</text>')
    return _svg(_WIDTH, _HEIGHT + (15 * len(lines) if len(lines) > 1 else 0), body)


def interval_chart(title: str, rows: Sequence[tuple[str, float, tuple[float, float] | None]], marked: float) -> str:
    """Returns a chart with a value and its interval in each row, and a line at the value of all examples.

    Args:
        title: the title above the chart.
        rows: the name, the value, and the ends of the interval or None.
        marked: the value of all examples. It is drawn only if it is finite, like the ends of intervals.
    """
    marks = [marked] if math.isfinite(marked) else []
    ends = [end for _, value, pair in rows for end in (value, *(pair or ())) if math.isfinite(end)]
    low, high = _span([*ends, *marks])
    left, width = 180, 620
    height = _TOP + 22 * len(rows) + 30

    def at(value: float) -> float:
        return left + _share(value, (low, high)) * (width - left - 20)

    body = [f'<text class="title" x="10" y="19">{html.escape(title)}</text>']
    body += [
        f'<line x1="{line:.1f}" x2="{line:.1f}" y1="{_TOP}" y2="{height - 26}" stroke="#9aa4ae" stroke-dasharray="3"/>'
        for line in map(at, marks)
    ]
    for number, (name, value, pair) in enumerate(rows):
        y = _TOP + 12 + 22 * number
        body.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{html.escape(_short(name, 26))}</text>')
        if not math.isfinite(value):
            continue
        if pair is not None and all(map(math.isfinite, pair)):
            body.append(
                f'<line x1="{at(pair[0]):.1f}" x2="{at(pair[1]):.1f}" y1="{y}" y2="{y}" stroke="{_COLOURS[0]}" '
                'stroke-width="2"/>'
            )
        body.append(f'<circle cx="{at(value):.1f}" cy="{y}" r="4" fill="{_COLOURS[0]}"/>')
    for value in (low, *marks, high):
        anchor = "start" if value == low else "end" if value == high else "middle"
        body.append(f'<text x="{at(value):.1f}" y="{height - 8}" text-anchor="{anchor}">{value:.4g}</text>')
    return _svg(width, height, body)


def matrix_chart(title: str, counts: Sequence[Sequence[float]]) -> str:
    """Returns a confusion matrix. Rows are labels, columns are predictions, and colours are shares of a row."""
    size = len(counts)
    cell = max(14, min(60, 240 // max(size, 1)))
    width, height = 60 + cell * size + 20, _TOP + cell * size + 40
    body = [f'<text class="title" x="10" y="19">{html.escape(title)}</text>']
    for row, line in enumerate(counts):
        total = sum(line)
        for column, count in enumerate(line):
            share = count / total if total else 0.0
            x, y = 60 + cell * column, _TOP + cell * row
            body.append(
                f'<rect x="{x}" y="{y}" width="{cell - 1}" height="{cell - 1}" fill="#1f5fbf" '
                f'fill-opacity="{0.05 + 0.9 * share:.3f}"/>'
            )
            if cell >= 26:
                colour = "#fff" if share > 0.5 else "#1b1f24"
                body.append(
                    f'<text x="{x + cell / 2:.1f}" y="{y + cell / 2 + 4:.1f}" text-anchor="middle" '
                    f'style="fill:{colour}">{count:.6g}</text>'
                )
        if cell >= 14:
            body.append(f'<text x="52" y="{_TOP + cell * row + cell / 2 + 4:.1f}" text-anchor="end">{row}</text>')
            middle = 60 + cell * row + cell / 2
            body.append(f'<text x="{middle:.1f}" y="{_TOP + cell * size + 14}" text-anchor="middle">{row}</text>')
    body.append(f'<text x="{60 + cell * size / 2:.1f}" y="{height - 8}" text-anchor="middle">predicted</text>')
    return _svg(width, height, body)


def _frame(title: str, across: tuple[float, float], up: tuple[float, float], x: str, y: str) -> str:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    return (
        f'<text class="title" x="10" y="19">{html.escape(title)}</text>'
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#9aa4ae"/>'
        f'<text x="{_LEFT}" y="{bottom + 15}">{across[0]:.4g}</text>'
        f'<text x="{right}" y="{bottom + 15}" text-anchor="end">{across[1]:.4g}</text>'
        f'<text x="{(_LEFT + right) / 2}" y="{bottom + 30}" text-anchor="middle">{html.escape(x)}</text>'
        f'<text x="{_LEFT - 6}" y="{bottom}" text-anchor="end">{up[0]:.4g}</text>'
        f'<text x="{_LEFT - 6}" y="{_TOP + 8}" text-anchor="end">{up[1]:.4g}</text>'
        f'<text x="16" y="{(_TOP + bottom) / 2}" transform="rotate(-90 16 {(_TOP + bottom) / 2})" '
        f'text-anchor="middle">{html.escape(_short(y, 28))}</text>'
    )


def _svg(width: int, height: int, body: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">{"".join(body)}</svg>'


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Returns the range of the values, never empty."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    around = 0.1 * abs(low) or 0.5
    if high > low:
        return low, high
    largest = sys.float_info.max
    return max(low - around, -largest), min(high + around, largest)


def _share(value: float, span: tuple[float, float]) -> float:
    """Returns the place of a value in a range, from 0 to 1."""
    low, high = span
    if math.isinf(high - low):  # halves have no difference that is infinite
        value, low, high = value / 2, low / 2, high / 2
    return (value - low) / (high - low)


def _across(value: float, span: tuple[float, float]) -> float:
    return _LEFT + _share(value, span) * (_WIDTH - _LEFT - _RIGHT)


def _up(value: float, span: tuple[float, float]) -> float:
    return _HEIGHT - _BOTTOM - _share(value, span) * (_HEIGHT - _TOP - _BOTTOM)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
