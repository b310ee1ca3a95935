"""Explanations as text."""

from __future__ import annotations

from estimator_explain.explanations import Explanations
from estimator_explain.importance import Importance

_COLUMNS = 4


def table_of(found: Explanations) -> str:
    """Returns a row for each feature, a column for each of the first four metrics, and one for attributions, if any.

    Attributions of other names follow. The model may receive a feature under another name than the input yields it,
    for example that of a sequence.

    Example:
        >>> one = Importance(features=("x",), metric="accuracy", baseline=0.9, losses=(0.2,))
        >>> print(table_of(Explanations(step=5, importances=[one])))
        feature  accuracy
        x        0.2
    """
    metrics = found.metrics[:_COLUMNS]
    cells = {(one.name, one.metric): _cell(one) for one in found.importances}
    last = ["attribution"] if found.strengths else []
    rows = [["feature", *metrics, *last]]
    for name in dict.fromkeys(one.name for one in found.importances):
        strength = [f"{found.strengths[name]:.4g}" if name in found.strengths else ""] if last else []
        rows.append([name, *(cells[name, metric] for metric in metrics), *strength])
    known = {one.name for one in found.importances}
    blank = [""] * len(metrics)
    rows += [[name, *blank, f"{value:.4g}"] for name, value in found.strengths.items() if name not in known]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _cell(one: Importance) -> str:
    ends = one.interval
    return f"{one.mean:.4g}" if ends is None else f"{one.mean:.4g} [{ends[0]:.4g}, {ends[1]:.4g}]"
