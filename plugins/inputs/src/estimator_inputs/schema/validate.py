"""`validate`: finds rows that violate a schema, and measures drift from the rows that it was learned from."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_inputs.schema.contract import FeatureSchema, Schema
from estimator_inputs.schema.drift import Distance, distances, shown_time
from estimator_inputs.schema.watching import Broken, Watcher
from estimator_inputs.statistics.gather import gathered
from estimator_inputs.statistics.record import ColumnStatistics, Statistics
from estimator_inputs.statistics.rows import Rows
from estimator_inputs.statistics.sources import rows_of_source


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits below which deviations are accepted.

    Args:
        jensen_shannon: the distance between the values of a column and the seen values. At most 1, which accepts
            everything.
        l_infinity: the difference between the two fractions of one value. At most 1.
        outside: the fraction of the numbers of a column that may be outside minimum and maximum.
        unknown: the fraction of the values of a column that may be outside the vocabulary.
        bad_rows: the fraction of the rows of files that may be bad.

    Raises:
        ArgumentError: a limit is not from 0 to 1.
    """

    jensen_shannon: float = 0.2
    l_infinity: float = 0.2
    outside: float = 0.0
    unknown: float = 0.0
    bad_rows: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value <= 1:
                raise ArgumentError(f"{name} must be from 0 to 1, given: {value}.")


@dataclass(frozen=True, kw_only=True)
class Anomaly:
    """A deviation that violates a schema.

    Attributes:
        kind: "bad rows", "missing column", "new column", "type", "shape", "missing values", "range", "new values" or
            "drift".
        column: the name of the column, or "" for bad rows.
        text: a description, with the first value and its row.
    """

    kind: str
    column: str
    text: str

    def __str__(self) -> str:
        return f"{self.column}: {self.text}" if self.column else self.text


@dataclass(frozen=True, kw_only=True)
class Validation:
    """The result of a validation.

    Attributes:
        statistics: the statistics of the rows.
        anomalies: the anomalies, in the order of the schema.
        distances: the distances of the columns, the largest first.
    """

    statistics: Statistics
    anomalies: tuple[Anomaly, ...]
    distances: tuple[Distance, ...]


def validate(
    source: Any,
    schema: Schema,
    *,
    limits: Limits | None = None,
    limit: int | None = None,
    label: bool = True,
    ignore: Collection[str] = (),
) -> Validation:
    """Reads rows once and compares them with a schema.

    Distances count as drift if they exceed both the limit and the effect of chance for this number of rows.

    Args:
        source: the rows. See `learn_schema`.
        schema: the schema of the rows.
        limits: the accepted deviations. None: the defaults.
        limit: the number of rows to read. None: all rows.
        label: False if the rows have no label, such as rows to predict. The label column may then be missing.
        ignore: the columns to skip, such as those that a request log masks.

    Raises:
        ArgumentError: a column of `ignore` is neither in the schema nor in the rows.
        ArgumentError, ArgumentTypeError, InputError: see `learn_schema`.

    Example:
        >>> from estimator_inputs import learn_schema
        >>> schema = learn_schema({"age": [1.0, 30.0], "size": ["S", "S"]})
        >>> for anomaly in validate({"age": [7.0, 99.0], "size": ["S", "L"]}, schema).anomalies:
        ...     print(anomaly)
        age: 1 of 2 values are outside 1 to 30: 99 at row 1
        size: 1 of 2 values are not in the vocabulary: 'L' at row 1
    """
    return validate_rows(rows_of_source(source, limit), schema, limits=limits, limit=limit, label=label, ignore=ignore)


def validate_rows(
    batches: Iterable[Rows],
    schema: Schema,
    *,
    limits: Limits | None = None,
    limit: int | None = None,
    label: bool = True,
    ignore: Collection[str] = (),
) -> Validation:
    """Validates batches of rows. See `validate`."""
    watcher = Watcher(schema)
    found = gathered(batches, limit=limit, observe=watcher)
    _check_ignored(ignore, {*schema.features, *found.columns})
    allowed = limits or Limits()
    if not label and schema.label is not None:
        features = {**schema.features, schema.label: replace(schema.feature(schema.label), required=False)}
        schema = replace(schema, features=features)
    anomalies = _bad_rows(found, allowed)
    for name, feature in schema.features.items():
        column = found.columns.get(name)
        if column is not None:
            anomalies += _of_column(feature, column, watcher, allowed)
        elif feature.required and found.rows:
            anomalies.append(
                Anomaly(
                    kind="missing column",
                    column=name,
                    text="is missing; if it may be absent, write required = false in the schema",
                )
            )
    for name in found.columns:
        if name not in schema.features:
            anomalies.append(Anomaly(kind="new column", column=name, text="is not in the schema"))
    apart = [one for one in distances(schema, found) if one.column not in ignore]
    apart.sort(key=lambda one: -one.jensen_shannon)
    anomalies += [
        Anomaly(
            kind="drift",
            column=one.column,
            text=(
                f"has drifted: Jensen-Shannon {one.jensen_shannon:.3f} (limit {allowed.jensen_shannon:g}), L-infinity "
                f"{one.l_infinity:.3f} (limit {allowed.l_infinity:g}) at {one.of}"
            ),
        )
        for one in apart
        if one.jensen_shannon > max(allowed.jensen_shannon, one.chance_js)
        or one.l_infinity > max(allowed.l_infinity, one.chance_l)
    ]
    kept = tuple(one for one in anomalies if one.column not in ignore)
    return Validation(statistics=found, anomalies=kept, distances=tuple(apart))


def _check_ignored(ignore: Collection[str], known: Collection[str]) -> None:
    unknown = sorted(set(ignore) - set(known))
    if unknown:
        raise ArgumentError(
            f"There is no column {unknown[0]!r} to ignore. The columns are: {', '.join(sorted(known))}."
        )


def _bad_rows(found: Statistics, limits: Limits) -> list[Anomaly]:
    total = found.rows + found.bad_rows
    if not total:
        return [Anomaly(kind="bad rows", column="", text="there are no rows")]
    if found.bad_rows <= limits.bad_rows * total:
        return []
    return [Anomaly(kind="bad rows", column="", text=f"{found.bad_rows} of {total} rows are bad: {found.bad[0]}")]


def _of_column(feature: FeatureSchema, column: ColumnStatistics, watcher: Watcher, limits: Limits) -> list[Anomaly]:
    found: list[tuple[str, str]] = []
    type_fault = _type_fault(feature, column, watcher)
    if type_fault:
        found.append(("type", type_fault))
    elif not _fits(feature.shape, column.shape) and column.values and feature.dtype != "null":
        found.append(("shape", f"has rows of shape {_shape(column.shape)}, but the schema has {_shape(feature.shape)}"))
    if column.missing_rate > feature.most_missing:
        first = watcher.missing[feature.name]
        found.append(
            (
                "missing values",
                f"{column.missing} of {column.rows} rows lack a value ({column.missing_rate:.2%}), but the "
                f"schema allows {feature.most_missing:.2%}: the first is {first.where}",
            )
        )
    outside = watcher.outside.get(feature.name, Broken())
    if outside.count > limits.outside * column.values:
        low, high = _shown(feature.minimum, feature, column), _shown(feature.maximum, feature, column)
        what = f"outside {low} to {high}" if low and high else f"below {low}" if low else f"above {high}"
        first = f"{_shown(outside.first, feature, column)} at {outside.where}"
        found.append(("range", f"{outside.count} of {column.values} values are {what}: {first}"))
    unknown = watcher.unknown.get(feature.name, Broken())
    if unknown.count > limits.unknown * column.values:
        others = [repr(value) for value, _ in unknown.values.most_common(6) if value != unknown.first]
        more = f"; others: {', '.join(others[:5])}" if others else ""
        text = f"{unknown.count} of {column.values} values are not in the vocabulary: {_first(unknown)}{more}"
        found.append(("new values", text))
    return [Anomaly(kind=kind, column=feature.name, text=text) for kind, text in found]


def _type_fault(feature: FeatureSchema, column: ColumnStatistics, watcher: Watcher) -> str | None:
    if column.missing == column.rows or feature.kind == "other":
        return None
    words = watcher.no_numbers.get(feature.name, Broken())
    if words.count:
        return f"{words.count} of {column.values} values are not numbers: {_first(words)}"
    real = watcher.no_whole.get(feature.name, Broken())
    if real.count:
        return f"{real.count} of {column.values} values are not whole numbers: {_first(real)}"
    wanted, given = _sort_of(feature.kind, feature.dtype), _sort_of(column.kind, column.dtype)
    return None if wanted == given else f"is {given} ({column.dtype}), but the schema has {wanted} ({feature.dtype})"


def _sort_of(kind: str, dtype: str) -> str:
    if dtype in ("bool", "string"):
        return {"bool": "true or false", "string": "text"}[dtype]
    if kind in ("time", "other"):
        return kind
    return "numbers"


def _fits(wanted: tuple[int | None, ...], given: tuple[int | None, ...]) -> bool:
    if len(wanted) != len(given):
        return False
    return all(size is None or size == other for size, other in zip(wanted, given, strict=True))


def _shape(shape: tuple[int | None, ...]) -> str:
    return f"({', '.join('*' if size is None else str(size) for size in shape)})"


def _shown(value: float | None, feature: FeatureSchema, column: ColumnStatistics) -> str:
    """Returns a number with all its digits, or a point in time; "" for None."""
    if value is None:
        return ""
    if feature.kind == "time" and math.isfinite(value):
        return shown_time(value)
    small = "float32" in (feature.dtype, column.dtype) and abs(value) <= float(np.finfo(np.float32).max)
    return str(np.float32(value) if small else value).removesuffix(".0")


def _first(broken: Broken) -> str:
    value = broken.first
    shown = f"{value:g}" if isinstance(value, float) else repr(value)
    return f"{shown} at {broken.where}"


def as_json(found: Validation) -> Mapping[str, Any]:
    """Returns the validation as JSON values."""
    return {
        "rows": found.statistics.rows,
        "bad_rows": found.statistics.bad_rows,
        "anomalies": [vars(anomaly) for anomaly in found.anomalies],
        "distances": [vars(distance) for distance in found.distances],
    }
