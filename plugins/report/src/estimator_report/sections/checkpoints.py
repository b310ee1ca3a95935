"""A section with each metric over the checkpoints."""

from __future__ import annotations

import html

from estimator_report.charts import line_chart
from estimator_report.contract import ReportSource

_MOST_ROWS = 12


class CheckpointSection:
    """Shows a chart for each number, and a table of the newest checkpoints.

    Example:
        >>> from pathlib import Path
        >>> source = ReportSource(model_dir=Path("x"), evaluation="", results={5: {"loss": 0.5}})
        >>> "<td>0.5</td>" in CheckpointSection().body(source)
        True
    """

    title, order = "Checkpoints", 10

    def body(self, source: ReportSource) -> str | None:
        """Returns the charts and the table, or None without results."""
        if not source.results:
            return None
        names = [name for name, value in source.newest.items() if isinstance(value, float | int) and "=" not in name]
        charts = [
            line_chart(
                name,
                {name: [(step, float(r[name])) for step, r in source.results.items() if name in r]},
                x="step",
                y=name,
            )
            for name in names
        ]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        rows = [
            f"<tr><td>{step}</td>" + "".join(f"<td>{_number(found.get(name))}</td>" for name in names) + "</tr>"
            for step, found in list(source.results.items())[-_MOST_ROWS:]
        ]
        return (
            f'<table><tr><th>step</th>{head}</tr>\n{"".join(rows)}</table>\n<div class="charts">{"".join(charts)}</div>'
        )


def _number(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float | int) else ""
