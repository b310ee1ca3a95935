"""The default heads of classifiers and regressors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimator_core.errors import ArgumentError, check_count, is_integer
from estimator_heads import BinaryClassHead, MultiClassHead, Reduction, RegressionHead

SUM_OVER_BATCH_SIZE = Reduction.SUM_OVER_BATCH_SIZE


def classifier_head(
    n_classes: int, weight_column: Any, label_vocabulary: Sequence[str] | None, loss_reduction: str
) -> Any:
    """Returns a head for two classes, or for more.

    Raises:
        ArgumentError: there are fewer than two classes, or the head refuses an argument.
    """
    if not is_integer(n_classes) or n_classes < 2:
        raise ArgumentError(f"n_classes must be an integer > 1, given: {n_classes!r}.")
    check_count("n_classes", n_classes, least=2)  # refuses a number of more than 64 bits
    options: dict[str, Any] = {
        "weight_column": weight_column,
        "label_vocabulary": label_vocabulary,
        "loss_reduction": loss_reduction,
    }
    return BinaryClassHead(**options) if n_classes == 2 else MultiClassHead(n_classes, **options)


def regression_head(label_dimension: int, weight_column: Any, loss_reduction: str) -> Any:
    """Returns a head for numbers.

    Raises:
        ArgumentError: the head refuses an argument.
    """
    return RegressionHead(label_dimension=label_dimension, weight_column=weight_column, loss_reduction=loss_reduction)
