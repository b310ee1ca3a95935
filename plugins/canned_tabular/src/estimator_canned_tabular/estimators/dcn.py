"""`DCNEstimator`: deep and cross networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import estimator_core as ec
from estimator_canned_tabular.models.dcn import dcn_model_fn
from estimator_canned_tabular.optimizers import RowSparse


class DCNEstimator(ec.Estimator):
    """A deep and cross network (DCN-v2) with any head.

    Args:
        head: computes loss, predictions, metrics and signatures.
        feature_columns: dense columns.
        cross_layers: the number of cross layers. Each multiplies its input by the features once more.
        hidden_units: the sizes of the hidden layers. Empty: only cross layers.
        projection_dim: the rank of the matrices of the cross layers. None: full matrices.
        structure: the hidden layers follow the cross layers ("stacked") or run in parallel to them ("parallel").
        optimizer: a name, an optax transformation, or a function that returns one.
        activation_fn: the activation after each hidden layer. None: relu.
        dropout: the dropout rate.
        batch_norm: whether to apply batch normalisation after each hidden layer.
        model_dir: see `ec.Estimator`.
        config: see `ec.Estimator`.
        warm_start_from: see `ec.Estimator`.
        row_sparse: whether tables are updated row by row. None: see `choose_optimizer`.
        plugins: see `ec.Estimator`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> from estimator_heads import BinaryClassHead
        >>> estimator = DCNEstimator(BinaryClassHead(), [numeric_column("x", 4)], hidden_units=[16])

    Source: Wang et al., "DCN V2: improved deep & cross network", 2021.
    """

    def __init__(
        self,
        head: Any,
        feature_columns: Sequence[Any],
        cross_layers: int = 3,
        hidden_units: Sequence[int] = (),
        projection_dim: int | None = None,
        structure: str = "stacked",
        optimizer: Any = "Adam",
        activation_fn: Callable[..., Any] | None = None,
        dropout: float | None = None,
        batch_norm: bool = False,
        *,
        model_dir: str | None = None,
        config: ec.RunConfig | None = None,
        warm_start_from: Any = None,
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            dcn_model_fn(
                head,
                feature_columns,
                cross_layers,
                hidden_units,
                projection_dim,
                structure,
                optimizer,
                activation_fn,
                dropout,
                batch_norm,
                row_sparse=row_sparse,
            ),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )
