"""A page with one curve, made with the page builder of estimator-report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from estimator_core.errors import ArgumentError


def write_curve(path: Path, title: str, *, x: str, y: str, points: Sequence[tuple[float, float]]) -> Path:
    """Writes one HTML file that loads no other file.

    Raises:
        ArgumentError: estimator-report is not installed, or the file cannot be written there.
    """
    try:
        from estimator_report import ReportSource, build_page, replace_page
        from estimator_report.charts import line_chart
    except ModuleNotFoundError as error:
        raise ArgumentError('Pages need estimator-report: pip install "estimator-runs[report]".') from error

    class Curve:
        """The only section of the page."""

        def __init__(self) -> None:
            self.title, self.order = title, 10

        def body(self, source: object) -> str:
            """Returns the chart."""
            return f'<div class="charts">{line_chart(y, {y: points}, x=x, y=y)}</div>'

    source = ReportSource(model_dir=path.parent, evaluation="", results={})
    return replace_page(path, build_page(title, source, [Curve()]))
