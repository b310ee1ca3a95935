"""The checks of the functions that make columns. The messages use the words that people search for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from estimator_canned_tabular.columns.contract import FeatureColumn
from estimator_canned_tabular.columns.dtypes import STRING
from estimator_core.errors import ArgumentError, ArgumentTypeError, is_integer

#: The limit of ids, which are int32 on the device.
MOST_IDS = 2**31 - 1


def check_key(key: Any) -> str:
    """Returns the name of a feature.

    Raises:
        ArgumentTypeError: it is not a string.
    """
    if not isinstance(key, str):
        raise ArgumentTypeError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")
    return key


def check_shape(shape: Any, key: str) -> tuple[int, ...]:
    """Returns the shape of one example.

    Raises:
        ArgumentError, ArgumentTypeError: the sizes are not positive integers.
    """
    several = isinstance(shape, Iterable) and getattr(shape, "ndim", 1)
    sizes: tuple[Any, ...] = tuple(shape) if several else (shape,)
    for size in sizes:
        if not is_integer(size):
            raise ArgumentTypeError(f"shape dimensions must be integer. shape: {shape}, key: {key}")
        if size < 1:
            raise ArgumentError(f"shape dimensions must be greater than 0. shape: {sizes}, key: {key}")
        if size > MOST_IDS:
            raise ArgumentError(f"shape dimensions must be at most {MOST_IDS}, key: {key}")
    return tuple(int(size) for size in sizes)


def check_count(name: str, value: Any, key: str) -> int:
    """Returns a number of buckets, at least 1.

    Raises:
        ArgumentError: it is missing, below 1, or larger than int32 allows.
        ArgumentTypeError: it is not an integer.
    """
    if value is None:
        raise ArgumentError(f"{name} must be set. key: {key}")
    if not is_integer(value):
        raise ArgumentTypeError(f"{name} must be an integer. {name}: {value!r}, key: {key}")
    if value < 1:
        raise ArgumentError(f"{name} must be at least 1. {name}: {value}, key: {key}")
    if value > MOST_IDS:
        raise ArgumentError(f"{name} must be at most {MOST_IDS}, key: {key}")
    return int(value)


def check_max_values(max_values: Any, key: str) -> int | None:
    """Returns the number of values of an example that are kept.

    Raises:
        ArgumentError: it is not positive.
        ArgumentTypeError: it is not an integer.
    """
    if max_values is None:
        return None
    if not is_integer(max_values):
        raise ArgumentTypeError(f"max_values must be an integer. max_values: {max_values!r}, column_name: {key}")
    if max_values < 1:
        raise ArgumentError(f"max_values must be at least 1. max_values: {max_values}, column_name: {key}")
    if max_values > MOST_IDS:
        raise ArgumentError(f"max_values must be at most {MOST_IDS}, column_name: {key}")
    return int(max_values)


def check_default(default: int | None, count: int, key: str) -> int | None:
    """Returns the id of unknown values.

    Raises:
        ArgumentError: it is not an id of the column.
    """
    if default is not None and not is_integer(default):
        raise ArgumentTypeError(f"default_value must be an integer. default_value: {default!r}, column_name {key}")
    if default is not None and not 0 <= default < count:
        raise ArgumentError(f"default_value {default} not in range [0, {count}), column_name {key}")
    return None if default is None else int(default)


def check_dates(dtype: str, key: str) -> None:
    """Checks that the dtype of a column of dates is text.

    Raises:
        ArgumentError: it is not text.
    """
    if dtype != STRING:
        raise ArgumentError(f"dates=True is for strings, but dtype is {dtype}. column_name: {key}")


def check_oov(num_oov_buckets: Any, default_value: int | None, key: str) -> int:
    """Returns the number of buckets for unknown values.

    Raises:
        ArgumentError: it is negative, larger than int32 allows, or a default value is set as well.
        ArgumentTypeError: it is not an integer.
    """
    if not is_integer(num_oov_buckets):
        raise ArgumentTypeError(f"num_oov_buckets must be an integer, given: {num_oov_buckets!r}, column_name: {key}")
    if num_oov_buckets > MOST_IDS:
        raise ArgumentError(f"num_oov_buckets must be at most {MOST_IDS}, column_name: {key}")
    if num_oov_buckets < 0:
        raise ArgumentError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")
    if num_oov_buckets and default_value not in (None, -1):
        raise ArgumentError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    return int(num_oov_buckets)


def listed(columns: Any, what: str) -> tuple[Any, ...]:
    """Returns the columns of an argument that accepts several.

    Args:
        columns: the value of the argument.
        what: the name of the argument.

    Raises:
        ArgumentError: the value is a single column, or has items that are not columns, such as names of features.
    """
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise ArgumentError(f"{what} must be a list of feature columns. Given: {columns!r}. Put it in a list: [...].")
    given = tuple(columns)
    for column in given:
        if isinstance(column, (str, bytes)):
            raise ArgumentError(
                f"Items of {what} must be feature columns. Given: {column!r}. For a feature of numbers, write "
                f"numeric_column({column!r}); for strings, categorical_column_with_vocabulary_list({column!r}, "
                "[...])."
            )
        if not isinstance(column, FeatureColumn):
            raise ArgumentError(
                f"Items of {what} must be feature columns. Given: {column!r}, of type {type(column).__name__}. Make "
                "one with numeric_column, or with another function whose name ends in _column."
            )
    return given


def check_no_missing_bucket(column: Any, where: str) -> None:
    """Refuses a bucket of missing values where examples without a value have no place.

    Raises:
        ArgumentError: naming the column and what to do.
    """
    if getattr(column, "missing_bucket", False):
        raise ArgumentError(
            f"{where} ignores missing values. Give it a column without missing_bucket=True, and use {column.name!r} as "
            "a separate feature column."
        )


def check_on_host(column: Any, where: str) -> None:
    """Refuses a part of a column whose ids would differ between the host and the device.

    Raises:
        ArgumentError: naming the column and what to do.
    """
    check_no_missing_bucket(column, where)
    source = getattr(column, "source_column", None)
    if source is None:
        return
    if source.normalizer_fn is not None:
        raise ArgumentError(
            f"{where} reads {column.name!r} on the host, where its normalizer_fn does not run: leave it out, and give "
            "boundaries of the original numbers."
        )
    if isinstance(source.missing, str):
        raise ArgumentError(
            f"{where} reads {column.name!r} on the host, where the {source.missing} is unknown: give "
            f"numeric_column({source.key!r}) a number as missing."
        )
