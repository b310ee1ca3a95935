"""The section of the report: importance of features, and attributions."""

from __future__ import annotations

import html
from typing import Any

from estimator_explain.explanations import Explanations, read_explanations
from estimator_explain.importance import place_of
from estimator_report import ReportSource
from estimator_report.charts import interval_chart

_MOST_METRICS, _MOST_ROWS = 3, 15


class ExplanationSection:
    """Shows the features for up to three metrics, the most important first, and then the mean attributions."""

    title, order = "What the model looks at", 24

    def body(self, source: ReportSource) -> str | None:
        """Returns the charts, or None if the model_dir has no explanations."""
        found = read_explanations(source.model_dir)
        if found is None:
            return None
        told = (
            f'<p class="quiet">Checkpoint {found.step}. How much worse a metric becomes when the values of a feature '
            "are shuffled among the rows. Features with the same information share their importance.</p>"
        )
        charts = [_importance(found, metric) for metric in found.metrics[:_MOST_METRICS]]
        return told + f'<div class="charts">{"".join(charts)}</div>' + _table(found) + _strengths(found)


def _importance(found: Explanations, metric: str) -> str:
    ranked = sorted((one for one in found.importances if one.metric == metric), key=place_of)
    rows = [(one.name, one.mean, one.interval) for one in ranked[:_MOST_ROWS]]
    return interval_chart(f"{metric} becomes worse by", rows, 0.0)


def _table(found: Explanations) -> str:
    metrics = found.metrics[:_MOST_METRICS]
    by_feature: dict[str, dict[str, Any]] = {}
    for one in found.importances:
        by_feature.setdefault(one.name, {})[one.metric] = one
    lines = [
        f"<tr><td>{html.escape(name)}</td>{''.join(f'<td>{row[metric].mean:.4g}</td>' for metric in metrics)}</tr>"
        for name, row in by_feature.items()
    ]
    head = "".join(f"<th>{html.escape(metric)}</th>" for metric in metrics)
    return f"<table><tr><th>feature</th>{head}</tr>{''.join(lines)}</table>"


def _strengths(found: Explanations) -> str:
    if not found.strengths:
        return ""
    rows = [(name, value, None) for name, value in list(found.strengths.items())[:_MOST_ROWS]]
    chart = interval_chart("mean absolute attribution", rows, 0.0)
    told = (
        '<p class="quiet">Integrated gradients: what the numbers of a row add to its score, on average. Attributions '
        f"of a row add up to the change of its score within {found.residual:.2g}.</p>"
    )
    return f'{told}<div class="charts">{chart}</div>'
