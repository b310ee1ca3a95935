"""Categories as rows of a learned table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from estimator_canned_tabular.columns.contract import CategoricalColumn
from estimator_canned_tabular.columns.indicator import check_categorical
from estimator_core.errors import ArgumentError, check_count, is_integer

if TYPE_CHECKING:
    from estimator_core.model import RowAccess

COMBINERS = ("mean", "sqrtn", "sum")
Initializer = Callable[..., Any]


@dataclass(frozen=True)
class EmbeddingTable:
    """A table of rows, with the settings of their lookup.

    Attributes:
        dimension: the number of values in a row.
        combiner: the way to combine the rows of one example: "mean", "sqrtn" or "sum".
        initializer: a function of `(key, shape, dtype)`; None: truncated normal, stddev `1 / sqrt(dimension)`.
        max_norm: the maximum norm of a row. Larger rows are scaled down to it. None: no maximum.
        trainable: whether training changes the table. False: it keeps its initial values.
        ckpt_to_load_from: a checkpoint with the initial values.
        tensor_name_in_ckpt: the name of the variable in that checkpoint.
        collection: the name of the variable if columns share it.
        access: the way to read and update rows; None: the default of `ec.sparse_lookup`.
    """

    dimension: int
    combiner: str = "mean"
    initializer: Initializer | None = None
    max_norm: float | None = None
    trainable: bool = True
    ckpt_to_load_from: str | None = None
    tensor_name_in_ckpt: str | None = None
    collection: str | None = None
    access: RowAccess | None = None

    def __post_init__(self) -> None:
        if not is_integer(self.dimension) or self.dimension < 1:
            raise ArgumentError(f"Invalid dimension {self.dimension}.")
        check_count("dimension", self.dimension)  # refuses a number of more than 64 bits
        if self.combiner not in COMBINERS:
            raise ArgumentError(f"combiner must be one of {', '.join(COMBINERS)}, given: {self.combiner!r}.")
        if (self.ckpt_to_load_from is None) != (self.tensor_name_in_ckpt is None):
            raise ArgumentError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
        if self.initializer is not None and not callable(self.initializer):
            raise ArgumentError("initializer must be callable if specified.")
        if self.max_norm is not None and self.max_norm <= 0:
            raise ArgumentError(f"max_norm must be positive, given: {self.max_norm}.")

    @property
    def initial_values(self) -> Initializer:
        """The initializer in use, with the default resolved."""
        if self.initializer is not None:
            return self.initializer
        import jax

        return jax.nn.initializers.truncated_normal(1.0 / math.sqrt(self.dimension))


@dataclass(frozen=True)
class EmbeddingColumn:
    """The record that `embedding_column` and `shared_embeddings` return."""

    categorical_column: Any
    table: EmbeddingTable

    @property
    def name(self) -> str:
        """The column's name with `_embedding` or `_shared_embedding`."""
        return f"{self.categorical_column.name}_{'shared_' if self.table.collection else ''}embedding"

    @property
    def width(self) -> int:
        """The dimension of the table."""
        return self.table.dimension

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The features of the categorical column."""
        return self.categorical_column.parse_example_spec


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: Initializer | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    access: RowAccess | None = None,
) -> EmbeddingColumn:
    """Represents categories as rows of a table. An example without a value becomes zeros.

    Args:
        categorical_column: the column of the categories.
        dimension: the number of values in a row.
        combiner: the way to combine the rows of one example: "mean", "sqrtn" or "sum".
        initializer: a function of `(key, shape, dtype)`, like those of `jax.nn.initializers`; None: truncated normal,
            stddev `1 / sqrt(dimension)`.
        ckpt_to_load_from: a checkpoint with the initial values.
        tensor_name_in_ckpt: the name of the variable in that checkpoint.
        max_norm: the maximum norm of a row. Larger rows are scaled down to it. None: no maximum.
        trainable: whether training changes the table. False: it keeps its initial values.
        access: the way to read and update rows. `estimator_tables.AllToAll()` splits them over the devices.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import categorical_column_with_hash_bucket
        >>> embedding_column(categorical_column_with_hash_bucket("word", 1000), 8).width
        8

    Source: `tf.feature_column.embedding_column`.
    """
    table = EmbeddingTable(
        dimension,
        combiner,
        initializer,
        max_norm,
        trainable,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        access=access,
    )
    return EmbeddingColumn(check_categorical(categorical_column), table)


def shared_embeddings(
    categorical_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: Initializer | None = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    access: RowAccess | None = None,
) -> list[EmbeddingColumn]:
    """Represents the categories of several columns as rows of one shared table.

    Args:
        categorical_columns: columns with the same number of buckets.
        dimension: the number of values in a row.
        combiner: the way to combine the rows of one example: "mean", "sqrtn" or "sum".
        initializer: a function of `(key, shape, dtype)`; None: truncated normal, stddev `1 / sqrt(dimension)`.
        shared_embedding_collection_name: the name of the table; None: derived from the names of the columns.
        ckpt_to_load_from: a checkpoint with the initial values.
        tensor_name_in_ckpt: the name of the variable in that checkpoint.
        max_norm: the maximum norm of a row. Larger rows are scaled down to it. None: no maximum.
        trainable: whether training changes the table. False: it keeps its initial values.
        access: the way to read and update rows. `estimator_tables.AllToAll()` splits them over the devices.

    Raises:
        ArgumentError: an argument cannot be used, or the columns cannot share a table.

    Example:
        >>> from estimator_canned_tabular import categorical_column_with_identity
        >>> seen, bought = (categorical_column_with_identity(key, 100) for key in ("seen", "bought"))
        >>> [column.name for column in shared_embeddings([seen, bought], 8)]
        ['seen_shared_embedding', 'bought_shared_embedding']

    Source: `tf.feature_column.shared_embeddings`.
    """
    columns = sorted((check_categorical(column) for column in categorical_columns), key=lambda column: column.name)
    if not columns:
        raise ArgumentError("categorical_columns must not be empty.")
    kinds = {type(_plain(column)) for column in columns}
    sizes = {column.num_buckets for column in columns}
    if len(kinds) > 1 or len(sizes) > 1:
        raise ArgumentError(
            "To use shared_embeddings, all categorical_columns must have the same type and number of buckets. Given: "
            f"{', '.join(f'{column.name} ({type(column).__name__}, {column.num_buckets})' for column in columns)}."
        )
    name = shared_embedding_collection_name or "_".join(column.name for column in columns) + "_shared_embedding"
    table = EmbeddingTable(
        dimension, combiner, initializer, max_norm, trainable, ckpt_to_load_from, tensor_name_in_ckpt, name, access
    )
    return [EmbeddingColumn(column, table) for column in categorical_columns]


def _plain(column: Any) -> Any:
    while hasattr(column, "categorical_column"):
        column = column.categorical_column
    return column
