"""The specs of the features that columns read from a tf.Example."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from estimator_canned_tabular.columns.checks import check_key, listed
from estimator_canned_tabular.columns.contract import FeatureColumn
from estimator_canned_tabular.columns.dtypes import FLOAT32, INT64, dtype_name
from estimator_canned_tabular.columns.numeric import NumericColumn
from estimator_core.errors import ArgumentError
from estimator_core.export import FixedLenFeature


def make_parse_example_spec(feature_columns: Iterable[Any]) -> dict[str, Any]:
    """Returns the features of a tf.Example that columns read, as readers and parsing receivers take them.

    Args:
        feature_columns: any columns.

    Returns:
        `ec.export.FixedLenFeature` or `VarLenFeature` by feature name.

    Raises:
        ArgumentError: there is no column, or two columns read one feature differently.

    Example:
        >>> from estimator_canned_tabular import categorical_column_with_hash_bucket, numeric_column
        >>> make_parse_example_spec([numeric_column("x"), categorical_column_with_hash_bucket("c", 9)])["c"]
        VarLenFeature(dtype='string')

    Source: `tf.feature_column.make_parse_example_spec`.
    """
    found: dict[str, Any] = {}
    for column in listed(feature_columns, "feature_columns"):
        if not isinstance(column, FeatureColumn):
            raise ArgumentError(f"All feature_columns must be FeatureColumn instances. Given: {column}")
        for key, spec in column.parse_example_spec.items():
            if found.setdefault(key, spec) != spec:
                raise ArgumentError(
                    f"feature_columns contain different parse_spec for key {key}. Given {spec} and {found[key]}"
                )
    return found


def classifier_parse_example_spec(
    feature_columns: Iterable[Any],
    label_key: str,
    label_dtype: Any = INT64,
    label_default: Any = None,
    weight_column: Any = None,
) -> dict[str, Any]:
    """Returns the features of a tf.Example that a classifier reads, with its label and weight.

    Args:
        feature_columns: any columns.
        label_key: the feature that is the label.
        label_dtype: "int64", or "string" with a label_vocabulary.
        label_default: the label of records without one.
        weight_column: the weight of each example: the name of a feature, or a numeric column.

    Raises:
        ArgumentError, ArgumentTypeError: the label or the weight is among the columns.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> classifier_parse_example_spec([numeric_column("x")], "y")["y"]
        FixedLenFeature(shape=(1,), dtype='int64', default_value=None)

    Source: `tf.estimator.classifier_parse_example_spec`.
    """
    label = FixedLenFeature((1,), dtype_name(label_dtype, check_key(label_key)), label_default)
    return _with_label(feature_columns, label_key, label, weight_column)


def regressor_parse_example_spec(
    feature_columns: Iterable[Any],
    label_key: str,
    label_dtype: Any = FLOAT32,
    label_default: Any = None,
    label_dimension: int = 1,
    weight_column: Any = None,
) -> dict[str, Any]:
    """Returns the features of a tf.Example that a regressor reads, with its label and weight.

    Args:
        feature_columns: any columns.
        label_key: the feature that is the label.
        label_dtype: the dtype of the label.
        label_default: the label of records without one.
        label_dimension: the number of values in a label.
        weight_column: the weight of each example: the name of a feature, or a numeric column.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> regressor_parse_example_spec([numeric_column("x")], "y", label_dimension=2)["y"]
        FixedLenFeature(shape=(2,), dtype='float32', default_value=None)

    Source: `tf.estimator.regressor_parse_example_spec`.
    """
    label = FixedLenFeature((label_dimension,), dtype_name(label_dtype, check_key(label_key)), label_default)
    return _with_label(feature_columns, label_key, label, weight_column)


def _with_label(columns: Iterable[Any], label_key: str, label: FixedLenFeature, weight_column: Any) -> dict[str, Any]:
    spec = make_parse_example_spec(columns)
    if label_key in spec:
        raise ArgumentError(f"label should not be used as feature. label_key: {label_key}, features: {sorted(spec)}")
    spec[label_key] = label
    if weight_column is None:
        return spec
    weights = NumericColumn(weight_column) if isinstance(weight_column, str) else weight_column
    if not isinstance(weights, NumericColumn):
        raise ArgumentError(f"weight_column should be a string or a numeric column. Given: {weight_column!r}")
    if weights.key in spec:
        raise ArgumentError(
            f"weight_column should not be used as feature. weight_column: {weights.key}, features: {sorted(spec)}"
        )
    return {**spec, **weights.parse_example_spec}
