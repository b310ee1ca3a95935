"""The tokens that a model knows, for inputs that refuse all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from estimator_canned_tabular.columns.contract import CategoricalColumn, FeatureColumn
from estimator_canned_tabular.columns.crossed import CrossedColumn
from estimator_canned_tabular.columns.dtypes import STRING
from estimator_canned_tabular.columns.vocabulary import VocabularyFileCategoricalColumn, VocabularyListCategoricalColumn
from estimator_core.errors import ArgumentError


def strict_vocabularies(
    feature_columns: Iterable[Any], *, label: str | None = None, label_vocabulary: Sequence[Any] | None = None
) -> dict[str, tuple[Any, ...]]:
    """Returns the argument `vocabularies=` of estimator-inputs: a row is bad if no column knows one of its tokens.

    The result covers the features that only vocabulary columns read, without buckets or a default id for other tokens.
    Such a column would silently leave an unknown token out. The tokens of features include `""` and -1, which mean no
    value. The label must have a value.

    Args:
        feature_columns: any columns.
        label: the name of the label in the files; None: no vocabulary for it.
        label_vocabulary: the classes of the label, as the estimator receives them.

    Returns:
        The tokens by feature and label: strings (bytes if they are not UTF-8) or integers.

    Raises:
        ArgumentError: there are no columns, a label has no vocabulary, a vocabulary has no label, or the label is a
            feature.

    Example:
        >>> from estimator_canned_tabular import categorical_column_with_vocabulary_list
        >>> size = categorical_column_with_vocabulary_list("size", ["S", "M", "L"])
        >>> strict_vocabularies([size], label="sold", label_vocabulary=["no", "yes"])
        {'size': ('S', 'M', 'L', ''), 'sold': ('no', 'yes')}
    """
    found: dict[str, dict[Any, None]] = {}
    open_keys: set[str] = set()
    features: set[str] = set()
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ArgumentError(f"All feature_columns must be FeatureColumn instances. Given: {column}")
        features.update(column.parse_example_spec)
        for key, part in _parts(column):
            if part is None or part.num_oov_buckets or part.default_value != -1:
                open_keys.add(key)
            else:
                missing = "" if part.dtype == STRING else -1
                found.setdefault(key, {}).update(dict.fromkeys([*map(_plain, part.tokens), missing]))
    strict = {key: tuple(tokens) for key, tokens in found.items() if key not in open_keys}
    if (label is None) != (label_vocabulary is None):
        raise ArgumentError("label and label_vocabulary go together: give both, or none.")
    if label is None or label_vocabulary is None:
        return strict
    if label in features:
        raise ArgumentError(f"label should not be used as feature. label: {label}, features: {sorted(features)}")
    return {**strict, label: tuple(label_vocabulary)}


def _parts(column: Any) -> Iterator[tuple[str, Any]]:
    """Yields the categorical features of a column: the name, and the vocabulary column, or None for other kinds."""
    if isinstance(column, (VocabularyListCategoricalColumn, VocabularyFileCategoricalColumn)):
        yield column.key, column
    elif isinstance(column, CrossedColumn):
        for part in column.crossed:
            yield from [(part, None)] if isinstance(part, str) else _parts(part)
    elif hasattr(column, "categorical_column"):
        yield from _parts(column.categorical_column)
    elif isinstance(column, CategoricalColumn):
        yield from ((key, None) for key in column.keys)


def _plain(token: Any) -> Any:
    try:
        return token.decode() if isinstance(token, bytes) else token
    except UnicodeDecodeError:
        return token
