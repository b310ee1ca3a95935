"""Columns that count categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from estimator_canned_tabular.columns.contract import CategoricalColumn
from estimator_core.errors import ArgumentError


@dataclass(frozen=True)
class IndicatorColumn:
    """The record that `indicator_column` returns."""

    categorical_column: Any

    @property
    def name(self) -> str:
        """The column's name with `_indicator`."""
        return f"{self.categorical_column.name}_indicator"

    @property
    def width(self) -> int:
        """The number of buckets of the categorical column."""
        return self.categorical_column.num_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The features of the categorical column."""
        return self.categorical_column.parse_example_spec


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """Counts how often each category occurs in an example.

    Raises:
        ArgumentError: the column is not categorical.

    Example:
        >>> from estimator_canned_tabular import categorical_column_with_vocabulary_list
        >>> indicator_column(categorical_column_with_vocabulary_list("colour", ["R", "G", "B"])).width
        3

    Source: `tf.feature_column.indicator_column`.
    """
    return IndicatorColumn(check_categorical(categorical_column))


def check_categorical(column: Any) -> Any:
    """Returns the column.

    Raises:
        ArgumentError: it is not categorical.
    """
    if not isinstance(column, CategoricalColumn):
        raise ArgumentError(f"Unsupported input type. Input must be a CategoricalColumn. Given: {column}")
    return column
