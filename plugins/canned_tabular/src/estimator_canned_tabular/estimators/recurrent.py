"""Estimators with recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import estimator_core as ec
from estimator_canned_tabular.estimators.heads import SUM_OVER_BATCH_SIZE, classifier_head
from estimator_canned_tabular.models.recurrent import rnn_model_fn
from estimator_canned_tabular.optimizers import RowSparse
from estimator_heads import SequentialHeadWrapper


class RNNEstimator(ec.Estimator):
    """A recurrent network with any head.

    Args:
        head: computes loss, predictions, metrics and signatures. With `return_sequences`, a `SequentialHeadWrapper`.
        sequence_feature_columns: `sequence_numeric_column`, or embeddings and indicators of
            `sequence_categorical_column_with_...`.
        context_feature_columns: dense columns whose values are added to the features of each step.
        units: the number of units of the layer, or of each layer.
        cell_type: "simple_rnn", "lstm", "gru", or a function that returns a `RecurrentCell` for a number of units.
        rnn_cell_fn: a function that returns one `RecurrentCell` or a list of them. It replaces units and cell_type.
        return_sequences: whether there are logits for each step, and not only for the last one.
        model_dir: see `ec.Estimator`.
        optimizer: a name (rate 0.05, gradients of each variable clipped to norm 5), an optax transformation, or a
            function that returns one.
        config: see `ec.Estimator`.
        warm_start_from: see `ec.Estimator`.
        row_sparse: whether tables are updated row by row. None: see `choose_optimizer`.
        plugins: see `ec.Estimator`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import sequence_numeric_column
        >>> from estimator_heads import RegressionHead
        >>> estimator = RNNEstimator(RegressionHead(), [sequence_numeric_column("x")], units=[8, 4], cell_type="gru")

    Source: `tf.estimator.experimental.RNNEstimator`.
    """

    def __init__(
        self,
        head: Any,
        sequence_feature_columns: Sequence[Any],
        context_feature_columns: Sequence[Any] | None = None,
        units: int | Sequence[int] | None = None,
        cell_type: Any = None,
        rnn_cell_fn: Callable[[], Any] | None = None,
        return_sequences: bool = False,
        model_dir: str | None = None,
        optimizer: Any = "Adagrad",
        config: ec.RunConfig | None = None,
        *,
        warm_start_from: Any = None,
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            rnn_model_fn(
                head,
                sequence_feature_columns,
                context_feature_columns,
                units,
                cell_type,
                rnn_cell_fn,
                return_sequences,
                optimizer,
                row_sparse=row_sparse,
            ),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )


class RNNClassifier(RNNEstimator):
    """A classifier of sequences, or of each step, with a recurrent network.

    Args:
        sequence_feature_columns: see `RNNEstimator`.
        context_feature_columns: see `RNNEstimator`.
        units: see `RNNEstimator`.
        cell_type: see `RNNEstimator`.
        rnn_cell_fn: see `RNNEstimator`.
        return_sequences: whether each step has a class.
        model_dir: see `ec.Estimator`.
        n_classes: the number of classes. Two classes have one logit.
        weight_column: the feature or numeric column with the weight of each example.
        label_vocabulary: names of the classes, if labels are strings.
        optimizer: see `RNNEstimator`.
        loss_reduction: "sum_over_batch_size" or "sum".
        sequence_mask: the name of the mask of valid steps in predictions.
        config: see `ec.Estimator`.
        warm_start_from: see `ec.Estimator`.
        row_sparse: see `RNNEstimator`.
        plugins: see `ec.Estimator`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import sequence_numeric_column
        >>> estimator = RNNClassifier([sequence_numeric_column("x")], units=8, cell_type="lstm")

    Source: `tf.estimator.experimental.RNNClassifier`.
    """

    def __init__(
        self,
        sequence_feature_columns: Sequence[Any],
        context_feature_columns: Sequence[Any] | None = None,
        units: int | Sequence[int] | None = None,
        cell_type: Any = None,
        rnn_cell_fn: Callable[[], Any] | None = None,
        return_sequences: bool = False,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        sequence_mask: str = "sequence_mask",
        config: ec.RunConfig | None = None,
        *,
        warm_start_from: Any = None,
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        if return_sequences:
            head = SequentialHeadWrapper(head, sequence_mask, weight_column)
        super().__init__(
            head,
            sequence_feature_columns,
            context_feature_columns,
            units,
            cell_type,
            rnn_cell_fn,
            return_sequences,
            model_dir,
            optimizer,
            config,
            warm_start_from=warm_start_from,
            row_sparse=row_sparse,
            plugins=plugins,
        )
