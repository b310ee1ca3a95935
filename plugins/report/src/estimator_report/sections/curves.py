"""A section with ROC, precision and recall, calibration and confusion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_report.charts import line_chart, matrix_chart
from estimator_report.contract import ReportSource
from estimator_report.curves import area, calibration, precision_recall, roc
from estimator_report.sections.slices import by_name

_SCORES, _CONFUSION = "report/scores", "report/confusion"
_MOST_SLICES = 4


class CurveSection:
    """Shows the counts of `report_metrics`, for all examples and for the largest slices."""

    title, order = "Curves", 30

    def body(self, source: ReportSource) -> str | None:
        """Returns the curves, or None if the newest evaluation was made without `report_metrics`."""
        newest = source.newest
        if _SCORES not in newest:
            return None
        counts = {"all": newest[_SCORES], **_of_slices(newest)}
        binary = len(newest[_CONFUSION]) == 2
        charts = [matrix_chart("confusion of labels", newest[_CONFUSION])]
        if binary:
            curves = {name: roc(each) for name, each in counts.items()}
            named = {f"{name}, area {area(points):.3f}": points for name, points in curves.items()}
            charts.append(line_chart("ROC", named, x="false positive rate", y="recall", unit=True, diagonal=True))
            found = {name: precision_recall(each) for name, each in counts.items()}
            charts.append(line_chart("precision and recall", found, x="recall", y="precision", unit=True))
        stated = {name: calibration(each) for name, each in counts.items()}
        charts.append(
            line_chart("calibration", stated, x="stated probability", y="observed frequency", unit=True, diagonal=True)
        )
        return f'<div class="charts">{"".join(charts)}</div>'


def _of_slices(newest: Mapping[str, Any]) -> dict[str, Any]:
    named = list(by_name(newest.get("slices", ())).items())[1:]
    counted = [(name, row) for name, row in named if _SCORES in row["metrics"]]
    largest = sorted(counted, key=lambda pair: -pair[1]["examples"])[:_MOST_SLICES]
    return {name: row["metrics"][_SCORES] for name, row in sorted(largest, key=lambda pair: pair[0])}
