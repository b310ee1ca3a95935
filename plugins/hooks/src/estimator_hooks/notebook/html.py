"""Pieces of HTML: tables and a curve. Everything that comes from a run is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "padding:2px 10px 2px 0;text-align:left"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a table with a heading.

    Example:
        >>> table(["name"], [["<b>"]]).count("&lt;b&gt;")
        1
    """
    heads = "".join(f'<th style="{_CELL}">{escape(cell)}</th>' for cell in head)
    lines = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(text(cell))}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"


def text(value: object) -> str:
    """Returns a value for a cell, at most 120 characters long."""
    shown = f"{value:.5g}" if isinstance(value, float) else str(value)
    return shown if len(shown) <= 120 else f"{shown[:117]}..."


def bar(done: int, total: int | None) -> str:
    """Returns a progress bar. Without a total, the bar shows only that the call makes progress."""
    value = "" if total is None else f' value="{done}" max="{max(total, 1)}"'
    return f'<progress style="width:16em;vertical-align:middle"{value}></progress>'


def curve(points: Sequence[tuple[float, float]], *, width: int = 480, height: int = 140) -> str:
    """Returns a line through points (x ascending), with labels at the ends of both axes.

    Empty for fewer than two points.

    Example:
        >>> curve([(1, 2.0), (2, 1.0)]).startswith("<svg")
        True
    """
    if len(points) < 2:
        return ""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    left, right, low, high = xs[0], xs[-1], min(ys), max(ys)
    across, up = (right - left) or 1.0, (high - low) or 1.0
    places = " ".join(
        f"{60 + (x - left) / across * (width - 70):.1f},{10 + (high - y) / up * (height - 35):.1f}" for x, y in points
    )
    label = 'font-size="11" fill="currentColor"'
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="loss by step">'
        f'<polyline points="{places}" fill="none" stroke="#1f77b4" stroke-width="1.5"/>'
        f'<text x="0" y="16" {label}>{high:.4g}</text><text x="0" y="{height - 22}" {label}>{low:.4g}</text>'
        f'<text x="60" y="{height - 5}" {label}>step {left:g}</text>'
        f'<text x="{width - 10}" y="{height - 5}" text-anchor="end" {label}>{right:g}</text></svg>'
    )
