"""`DLRMEstimator`: recommendation models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import estimator_core as ec
from estimator_canned_tabular.columns.embedding import EmbeddingColumn
from estimator_canned_tabular.models.dlrm import dlrm_model_fn
from estimator_canned_tabular.optimizers import RowSparse


class DLRMEstimator(ec.Estimator):
    """A deep learning recommendation model with any head.

    Args:
        head: computes loss, predictions, metrics and signatures.
        dense_columns: the columns of numbers. The list may be empty.
        embedding_columns: embedding columns of one dimension.
        bottom_units: sizes of the hidden layers for the numbers.
        top_units: sizes of the hidden layers for the products.
        optimizer: a name, an optax transformation, or a function that returns one.
        activation_fn: the activation after each hidden layer. None: relu.
        dropout: the dropout rate.
        model_dir: see `ec.Estimator`.
        config: see `ec.Estimator`.
        warm_start_from: see `ec.Estimator`.
        row_sparse: whether tables are updated row by row. None: see `choose_optimizer`.
        plugins: see `ec.Estimator`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import categorical_column_with_identity, embedding_column, numeric_column
        >>> from estimator_heads import BinaryClassHead
        >>> ad = embedding_column(categorical_column_with_identity("ad", 100), 8)
        >>> estimator = DLRMEstimator(BinaryClassHead(), [numeric_column("x")], [ad])

    Source: Naumov et al., "Deep learning recommendation model for personalization and recommendation systems", 2019.
    """

    def __init__(
        self,
        head: Any,
        dense_columns: Sequence[Any],
        embedding_columns: Sequence[EmbeddingColumn],
        bottom_units: Sequence[int] = (64,),
        top_units: Sequence[int] = (64, 32),
        optimizer: Any = "Adagrad",
        activation_fn: Callable[..., Any] | None = None,
        dropout: float | None = None,
        *,
        model_dir: str | None = None,
        config: ec.RunConfig | None = None,
        warm_start_from: Any = None,
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            dlrm_model_fn(
                head,
                dense_columns,
                embedding_columns,
                bottom_units,
                top_units,
                optimizer,
                activation_fn,
                dropout,
                row_sparse=row_sparse,
            ),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )
