"""A section about the slices of the newest checkpoint, the worst first, and their changes."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from estimator_core.metrics import less_is_better
from estimator_report.charts import interval_chart, line_chart
from estimator_report.contract import ReportSource

#: Metrics that describe the data, not the quality of the model.
_OF_DATA = ("label/mean", "prediction/mean", "accuracy_baseline")
_MOST_IN_CHART, _MOST_LINES, _MOST_METRICS = 15, 5, 6
Row = Mapping[str, Any]


class SliceSection:
    """Shows the slices for each metric, the worst first: table, intervals, and the worst over the checkpoints."""

    title, order = "Slices", 20

    def body(self, source: ReportSource) -> str | None:
        """Returns the tables and charts, or None if the newest evaluation has no slices."""
        rows: Sequence[Row] = source.newest.get("slices", ())
        if len(rows) < 2:
            return None
        names = [name for name, value in rows[0]["metrics"].items() if isinstance(value, float)]
        chosen = [name for name in names if not name.startswith(_OF_DATA)][:_MOST_METRICS]
        told = (
            '<p class="quiet">The worst slice is first. Red: the whole interval is on the bad side of the value of all '
            "examples. Among many slices, some look bad by chance.</p>"
        )
        return told + "".join(self._metric(name, rows, source) for name in chosen)

    def _metric(self, name: str, rows: Sequence[Row], source: ReportSource) -> str:
        sign = -1.0 if less_is_better(name) else 1.0
        whole = float(rows[0]["metrics"][name])
        of_all, *named = by_name(rows).items()
        ranked = sorted(named, key=lambda pair: _rank(sign * float(pair[1]["metrics"][name])))
        lines = [
            f"<tr{_mark(row, name, whole, sign)}><td>{html.escape(told)}</td><td>{row['examples']}</td>"
            f"<td>{row['metrics'][name]:.4g}</td><td>{_ends(row, name)}</td></tr>"
            for told, row in [of_all, *ranked]
        ]
        worst = ranked[:_MOST_IN_CHART]
        shown = [(told, float(row["metrics"][name]), _pair(row, name)) for told, row in worst]
        charts = [interval_chart(name, shown, whole)]
        if len(source.results) > 1:
            drawn = sorted(ranked[:_MOST_LINES], key=lambda pair: pair[0])  # a slice has the same colour in all charts
            over = {told: _history(row, name, source) for told, row in [of_all, *drawn]}
            charts.append(line_chart(f"{name}, the worst", over, x="step", y=name))
        return (
            f"<h3>{html.escape(name)}</h3><table><tr><th>slice</th><th>examples</th><th>value</th><th>interval</th></tr>"
            f'{"".join(lines)}</table><div class="charts">{"".join(charts)}</div>'
        )


def by_name(rows: Sequence[Row]) -> dict[str, Row]:
    """Returns slices by their names. If names are equal, such as those of 1 and of "1", texts are quoted.

    Example:
        >>> list(by_name([{"slice": {}}, {"slice": {"deck": None}}, {"slice": {"deck": 1}}, {"slice": {"deck": "1"}}]))
        ['all', 'deck=(missing)', 'deck=1', "deck='1'"]
    """
    counts = Counter(map(_slice_name, rows))
    return {_slice_name(row, quoted=counts[_slice_name(row)] > 1): row for row in rows}


def _slice_name(row: Row, *, quoted: bool = False) -> str:
    told = {key: repr(value) if quoted and isinstance(value, str) else value for key, value in row["slice"].items()}
    return ", ".join(f"{key}={'(missing)' if value is None else value}" for key, value in told.items()) or "all"


def _rank(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _pair(row: Row, name: str) -> tuple[float, float] | None:
    ends = row["intervals"].get(name)
    return None if ends is None else (float(ends[0]), float(ends[1]))


def _ends(row: Row, name: str) -> str:
    pair = _pair(row, name)
    return "" if pair is None else f"{pair[0]:.4g} – {pair[1]:.4g}"  # noqa: RUF001 - the sign of a range


def _mark(row: Row, name: str, whole: float, sign: float) -> str:
    pair = _pair(row, name)
    is_bad = pair is not None and max(sign * pair[0], sign * pair[1]) < sign * whole
    return ' class="bad"' if is_bad else ""


def _history(row: Row, name: str, source: ReportSource) -> list[tuple[float, float]]:
    return [
        (step, float(other["metrics"][name]))
        for step, found in source.results.items()
        for other in found.get("slices", ())
        if repr(other["slice"]) == repr(row["slice"]) and name in other["metrics"]  # True, 1 and 1.0 are three values
    ]
