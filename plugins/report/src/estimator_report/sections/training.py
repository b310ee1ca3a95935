"""A section with the curves of a training, from its event files."""

from __future__ import annotations

from estimator_report.charts import line_chart
from estimator_report.contract import ReportSource
from estimator_report.scalars import read_scalars

_MOST_CHARTS, _MOST_POINTS = 12, 500
_FIRST = ("loss", "learning_rate", "global_step/sec")


class TrainingSection:
    """Shows a chart for each scalar, the loss first.

    Example:
        >>> from pathlib import Path
        >>> TrainingSection().body(ReportSource(model_dir=Path("no/such"), evaluation="", results={})) is None
        True
    """

    title, order = "Training", 5

    def body(self, source: ReportSource) -> str | None:
        """Returns the charts, or None without event files."""
        scalars = read_scalars(source.model_dir)
        if not scalars:
            return None
        names = sorted(scalars, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))
        charts = [line_chart(name, {name: _thinned(scalars[name])}, x="step", y=name) for name in names[:_MOST_CHARTS]]
        more = f'<p class="quiet">{len(names) - _MOST_CHARTS} more in the event files.</p>'
        return f'<div class="charts">{"".join(charts)}</div>' + (more if len(names) > _MOST_CHARTS else "")


def _thinned(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Returns at most about 500 points, including the last one."""
    every = max(1, -(-len(points) // _MOST_POINTS))
    return [*points[:-1:every], points[-1]]
