"""The result of an evaluation by slice: one row for each slice, as in `metrics.jsonl`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

#: The name of the rows in the results of an evaluation.
RESULT = "slices"
MISSING = "(missing)"


@dataclass(frozen=True, kw_only=True)
class SliceRow:
    """The result of one slice.

    Args:
        slice: the value by feature. Empty: all examples. None as a value: the value is missing.
        examples: the number of examples.
        metrics: the metrics by name, as in the evaluation: numbers, and lists for metrics with several values.
        intervals: the lower and upper end by metric. A metric without an interval is absent.
    """

    slice: Mapping[str, Any]
    examples: int
    metrics: Mapping[str, Any]
    intervals: Mapping[str, tuple[float, float]]

    @property
    def name(self) -> str:
        """The slice in words."""
        return slice_name(self.slice)

    def to_json(self) -> dict[str, Any]:
        """Returns the row as JSON values."""
        return {
            "slice": dict(self.slice),
            "examples": self.examples,
            "metrics": dict(self.metrics),
            "intervals": {name: list(ends) for name, ends in self.intervals.items()},
        }


def slice_name(values: Mapping[str, Any], *, quoted: bool = False) -> str:
    """Returns a slice in words.

    Args:
        values: the value by feature.
        quoted: whether values that are texts are quoted.

    Example:
        >>> slice_name({"sex": "female", "pclass": 1}), slice_name({"deck": None}), slice_name({})
        ('sex=female,pclass=1', 'deck=(missing)', 'all')
        >>> slice_name({"deck": "1"}, quoted=True)
        "deck='1'"
    """
    told = {key: repr(value) if quoted and isinstance(value, str) else value for key, value in values.items()}
    return ",".join(f"{key}={MISSING if value is None else value}" for key, value in told.items()) or "all"


def by_name(rows: Iterable[SliceRow]) -> dict[str, SliceRow]:
    """Returns rows by their names. If names are equal, such as those of 1 and of "1", texts are quoted.

    Example:
        >>> rows = [SliceRow(slice={"k": one}, examples=1, metrics={}, intervals={}) for one in (1, "1", "2")]
        >>> list(by_name(rows))
        ['k=1', "k='1'", 'k=2']
    """
    found = list(rows)
    counts = Counter(row.name for row in found)
    return {slice_name(row.slice, quoted=counts[row.name] > 1): row for row in found}


def rows_of(metrics: Mapping[str, Any]) -> list[SliceRow]:
    """Returns the rows in the results of an evaluation. Empty if it had no slices.

    Example:
        >>> rows_of({"loss": 0.5})
        []
    """
    return [
        SliceRow(
            slice=row["slice"],
            examples=row["examples"],
            metrics=row["metrics"],
            intervals={name: (low, high) for name, (low, high) in row["intervals"].items()},
        )
        for row in metrics.get(RESULT, ())
    ]
