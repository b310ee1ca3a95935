"""Reads datasets of Hugging Face as Arrow tables."""

from __future__ import annotations

from typing import Any

from estimator_core.errors import ArgumentError


def is_dataset(value: Any) -> bool:
    """Returns whether a value is a dataset of Hugging Face, in memory or read from a stream."""
    return hasattr(value, "with_format") and hasattr(value, "iter")


def in_arrow(dataset: Any) -> Any:
    """Returns a dataset whose rows are Arrow tables, with the columns that its format selects.

    Raises:
        ArgumentError: the dataset has a transform, which is not applied to Arrow tables.
    """
    form: dict[str, Any] = getattr(dataset, "format", None) or {}
    if form.get("type") == "custom":
        raise ArgumentError(
            "The dataset has a transform (with_transform, set_transform), which is applied only to rows of Python "
            "objects. Apply it to the dataset: dataset.with_format(None).map(transform, batched=True)."
        )
    chosen = None if form.get("output_all_columns") else form.get("columns")
    return dataset.with_format("arrow") if chosen is None else dataset.with_format("arrow", columns=chosen)
