"""Common functions of the classification heads: class ids and names in predictions, and the check of loss options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentError
from estimator_core.export import ClassificationOutput, PredictOutput
from estimator_heads.keys import (
    CLASSIFY_SERVING_KEY,
    DEFAULT_SERVING_KEY,
    PREDICT_SERVING_KEY,
    PredictionKeys,
)
from estimator_heads.losses.options import LossOptions
from estimator_heads.vocabulary import Vocabulary

if TYPE_CHECKING:
    from estimator_core.export import ExportOutput
    from estimator_heads.loss_function import LossFn

PLAIN_LOSS = LossOptions()


def check_options(options: LossOptions, loss_fn: LossFn | None, n_classes: int) -> LossOptions:
    """Returns the options if they fit the head.

    Raises:
        ArgumentError: options are combined with a loss_fn, which would ignore them, or the number of class weights is
            wrong.
    """
    if loss_fn is not None and options != PLAIN_LOSS:
        raise ArgumentError(
            "loss_options change the head's own loss and have no effect with a loss_fn. Give one of them."
        )
    options.check_classes(n_classes)
    return options


def all_class_ids(logits: jax.Array, n_classes: int) -> jax.Array:
    """Returns the ids of all classes for each example, int32 [batch, n_classes]."""
    return jnp.broadcast_to(jnp.arange(n_classes, dtype=jnp.int32), (logits.shape[0], n_classes))


def class_names(vocabulary: Vocabulary | None, n_classes: int) -> tuple[str, ...]:
    """Returns the names of the classes. Without a vocabulary, these are their ids as strings."""
    return tuple(str(class_id) for class_id in range(n_classes)) if vocabulary is None else vocabulary.names


def classification_outputs(
    predictions: Mapping[Any, jax.Array], names: tuple[str, ...], **more: ExportOutput
) -> dict[str, ExportOutput]:
    """Returns the signatures of a classifier: probabilities and classes as default, all predictions as "predict"."""
    probabilities = predictions[PredictionKeys.PROBABILITIES]
    classes = ClassificationOutput(
        scores=probabilities, classes=all_class_ids(probabilities, len(names)), class_names=names
    )
    return {
        DEFAULT_SERVING_KEY: classes,
        CLASSIFY_SERVING_KEY: classes,
        **more,
        PREDICT_SERVING_KEY: PredictOutput(dict(predictions), class_names=names),
    }
