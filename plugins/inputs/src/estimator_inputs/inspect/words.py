"""Texts about the statistics of a column, for the terminal and the page."""

from __future__ import annotations

from typing import Any

from estimator_inputs.statistics.record import ColumnStatistics


def type_of(column: ColumnStatistics) -> str:
    """Returns type and shape, such as `float32[2]`. Variable sizes are shown as a star."""
    shape = "x".join("*" if size is None else str(size) for size in column.shape)
    return f"{column.dtype}[{shape}]" if shape else column.dtype


def missing_of(column: ColumnStatistics) -> str:
    """Returns the number and share of rows without a value."""
    return f"{column.missing:,} missing ({column.missing_rate:.1%})" if column.missing else "-"


def different_of(column: ColumnStatistics) -> str:
    """Returns the number of different values, and the error if it is an estimate."""
    exact = f"{column.different:,}"
    return f"about {exact} (+-{column.error:.1%})" if column.error else exact


def statistics_of(column: ColumnStatistics) -> str:
    """Returns the limits, mean and quartiles of numbers, or the most common words."""
    if column.words:
        return ", ".join(f"{short(word)!r} {count:,}" for word, count in list(column.words.items())[:3])
    if column.numbers is None or column.minimum is None:
        return "no value" if not column.values else ""
    low, middle, high = column.numbers.quantiles([0.25, 0.5, 0.75])
    text = f"{column.minimum:.6g} to {column.maximum:.6g}"
    if column.mean is not None:
        text += f", mean {column.mean:.6g}, deviation {column.deviation:.4g}"
    text += f", quartiles {low:.4g} {middle:.4g} {high:.4g}"
    return text + (f", {column.infinite} infinite" if column.infinite else "")


def short(value: Any) -> str:
    """Returns a value in at most 30 characters."""
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 30 else text[:27] + "..."
