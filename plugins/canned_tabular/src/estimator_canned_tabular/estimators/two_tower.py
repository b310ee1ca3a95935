"""`TwoTowerEstimator`: retrieval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import estimator_core as ec
from estimator_canned_tabular.models.two_tower import two_tower_model_fn
from estimator_canned_tabular.optimizers import RowSparse


class TwoTowerEstimator(ec.Estimator):
    """A retrieval model that represents a query and a candidate as vectors. Their product is the score.

    Args:
        head: computes loss, predictions, metrics and signatures. A `RetrievalHead(dimension)` receives both vectors.
            Any head of one logit receives the score.
        query_columns: dense columns of the query.
        candidate_columns: dense columns of the candidate.
        dimension: the size of the vectors.
        hidden_units: the sizes of the hidden layers of each tower.
        normalize: whether vectors are scaled to length 1.
        optimizer: a name, an optax transformation, or a function that returns one.
        activation_fn: the activation after each hidden layer. None: relu.
        dropout: the dropout rate.
        model_dir: see `ec.Estimator`.
        config: see `ec.Estimator`.
        warm_start_from: see `ec.Estimator`.
        keep_features: the features that the head reads although a categorical column reads them, too, such as candidate
            ids.
        row_sparse: whether tables are updated row by row. None: see `choose_optimizer`.
        plugins: see `ec.Estimator`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> from estimator_heads import RetrievalHead
        >>> estimator = TwoTowerEstimator(RetrievalHead(8), [numeric_column("age")], [numeric_column("price")], 8)

    Source: Yi et al., "Sampling-bias-corrected neural modeling for large corpus item recommendations", 2019.
    """

    def __init__(
        self,
        head: Any,
        query_columns: Sequence[Any],
        candidate_columns: Sequence[Any],
        dimension: int = 32,
        hidden_units: Sequence[int] = (64,),
        normalize: bool = True,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[..., Any] | None = None,
        dropout: float | None = None,
        *,
        model_dir: str | None = None,
        config: ec.RunConfig | None = None,
        warm_start_from: Any = None,
        keep_features: Sequence[str] = (),
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            two_tower_model_fn(
                head,
                query_columns,
                candidate_columns,
                dimension,
                hidden_units,
                normalize,
                optimizer,
                activation_fn,
                dropout,
                keep_features=keep_features,
                row_sparse=row_sparse,
            ),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )
