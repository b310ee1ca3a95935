"""A page about many runs, made with the page builder of estimator-report: overlaid curves, configurations, a table."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_runs.records.comparing import Against, against_best, column_text, differences, rank
from estimator_runs.records.reading import RunRecord

#: The maximum number of lines in one chart, because more cannot be distinguished.
_MOST_LINES = 12


def write_page(runs: Sequence[RunRecord], metrics: Sequence[str], path: Path, *, mode: str = "min") -> Path:
    """Writes one HTML file that loads no other file.

    Args:
        runs: the runs of the page.
        metrics: one chart for each. The 12 best runs by the first one are drawn.
        path: the path of the file.
        mode: "min" or "max", for the first metric. It determines the order of the runs and the best configuration.

    Raises:
        ArgumentError: estimator-report is not installed, or the file cannot be written there.
    """
    try:
        from estimator_report import ReportSource, build_page, replace_page
    except ModuleNotFoundError as error:
        raise ArgumentError('Pages need estimator-report: pip install "estimator-runs[report]".') from error
    common = Path(os.path.commonpath([run.path.absolute() for run in runs]))
    source = ReportSource(model_dir=common, evaluation="", results={})
    runs = sorted(runs, key=lambda run: rank(run.best(metrics[0], mode), mode))
    sections: list[Any] = [_Table(runs, metrics, mode), _Curves(runs, metrics, common)]
    if pairs := against_best(runs, metrics[0], mode):
        sections.append(_Configurations(pairs, metrics[0]))
    return replace_page(path, build_page(f"{len(runs)} runs", source, sections))


class _Table:
    """The best value of the first metric, last values, seed and differing settings of every run, the best run first."""

    title, order = "Runs", 10

    def __init__(self, runs: Sequence[RunRecord], metrics: Sequence[str], mode: str) -> None:
        self._runs, self._metrics, self._mode = runs, metrics, mode

    def body(self, source: object) -> str:
        """Returns the table."""
        varying = {key: column_text(values) for key, values in differences(self._runs).items()}
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._head(varying))
        rows = [
            "".join(
                f"<td>{html.escape(text)}</td>"
                for text in (
                    str(run.path),
                    short_number(run.best(self._metrics[0], self._mode)),
                    *(_last(run, metric) for metric in self._metrics),
                    "" if run.seed is None else str(run.seed),
                    *(texts[place] for texts in varying.values()),
                )
            )
            for place, run in enumerate(self._runs)
        ]
        return f"<table><tr>{head}</tr>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"

    def _head(self, varying: Iterable[str]) -> Iterable[str]:
        return ("run", f"best {self._metrics[0]}", *(f"last {name}" for name in self._metrics), "seed", *varying)


class _Curves:
    """A chart for each metric, with a line for each run. The different parts of paths name the lines."""

    title, order = "Curves", 5

    def __init__(self, runs: Sequence[RunRecord], metrics: Sequence[str], common: Path) -> None:
        self._metrics, self._count = metrics, len(runs)
        names = [str(run.path.absolute().relative_to(common)) for run in runs[:_MOST_LINES]]
        # A run that contains all others is their common directory, and "." would not be a name.
        self._runs = {common.name if name == "." else name: run for name, run in zip(names, runs, strict=False)}

    def body(self, source: object) -> str:
        """Returns the charts."""
        from estimator_report.charts import line_chart

        charts = [
            line_chart(metric, {name: _points(run, metric) for name, run in self._runs.items()}, x="step", y=metric)
            for metric in self._metrics
        ]
        cut = f"<p>The best {_MOST_LINES} of {self._count} runs are drawn.</p>" if self._count > _MOST_LINES else ""
        return f'{cut}<div class="charts">{"".join(charts)}</div>'


class _Configurations:
    """Each configuration in comparison with the best one, over the same seeds."""

    title, order = "Configurations", 7

    def __init__(self, pairs: Sequence[Against], metric: str) -> None:
        self._pairs, self._metric = pairs, metric

    def body(self, source: object) -> str:
        """Returns the table."""
        best = html.escape(f"The best by {self._metric} is {self._pairs[0].best}. A row compares another one.")
        head = "".join(f"<th>{name}</th>" for name in ("configuration", "seeds", "difference", "95% interval"))
        rows = [
            f"<td>{html.escape(one.settings)}</td><td>{len(one.found.seeds)}</td><td>{one.found.difference:+.4g}</td>"
            f"<td>[{one.found.low:+.4g}, {one.found.high:+.4g}]</td>"
            for one in self._pairs
        ]
        told = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<p>{best}</p><table><tr>{head}</tr>{told}</table>"


def _points(run: RunRecord, metric: str) -> Sequence[tuple[float, float]]:
    found = run.digest(metric)
    return () if found is None else found.points


def _last(run: RunRecord, metric: str) -> str:
    found = run.digest(metric)
    return short_number(None if found is None else found.last)


def short_number(value: float | None) -> str:
    """Returns the text of a metric in a table; empty if there is no value."""
    return "" if value is None else f"{value:.5g}"
