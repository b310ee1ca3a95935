"""Applies a head to each step of sequences of different lengths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.inputs import apply_transforms
from estimator_heads.base_head import BaseHead
from estimator_heads.flattening import flat_steps, steps_as_rows
from estimator_heads.multi_head import MultiHead
from estimator_heads.vocabulary import are_strings

if TYPE_CHECKING:
    from estimator_core.export import ExportOutput
    from estimator_core.hooks import Hook
    from estimator_core.inputs import HostTransform
    from estimator_core.metrics import Metric
    from estimator_core.specs import EstimatorSpec


class SequentialHeadWrapper(BaseHead):
    """A head for logits [batch, time, ...]. Steps outside the mask count neither in the loss nor in the metrics.

    Predictions are those of the head for all steps, and the mask.

    Args:
        static_head: the head for one step. It must not be a MultiHead.
        sequence_length_mask: the name of the feature with the mask, bool [batch, time].
        feature_columns: the names of the features [batch, time, ...] that the head reads, such as its weight column.

    Raises:
        ArgumentError: the head is a MultiHead.
        ArgumentTypeError: a name is not a string.

    Example:
        >>> import numpy as np
        >>> from estimator_heads import BinaryClassHead
        >>> head = SequentialHeadWrapper(BinaryClassHead(), "mask")
        >>> logits, labels = np.array([[0.3, 0.5], [-1.0, 2.0]]), np.array([[1, 0], [1, 0]])
        >>> mask = np.array([[True, True], [True, False]])
        >>> round(float(head.loss(labels, logits[..., None], {"mask": mask})), 6)
        0.947231

    Source: `tensorflow_estimator.python.estimator.head.sequential_head`.
    """

    def __init__(
        self,
        static_head: BaseHead,
        sequence_length_mask: str = "sequence_length_mask",
        feature_columns: str | Iterable[str] | None = None,
    ) -> None:
        if not isinstance(sequence_length_mask, str):
            raise ArgumentTypeError(
                f"`sequence_mask` column must be a string. Given type: {type(sequence_length_mask)}."
            )
        columns = [] if feature_columns is None else feature_columns
        if not isinstance(columns, Iterable):
            raise ArgumentTypeError(
                "`feature_columns` must be either a string or an iterable of strings "
                f"got {type(feature_columns)} instead."
            )
        self._columns = (columns,) if isinstance(columns, str) else tuple(columns)
        for column in self._columns:
            if not isinstance(column, str):
                raise ArgumentTypeError(f"Column must a string. Given type: {type(column)}.")
        if isinstance(static_head, MultiHead):
            raise ArgumentError("`MultiHead` is not supported with `SequentialHeadWrapper`.")
        super().__init__(
            name=f"{static_head.name}_sequential" if static_head.name else None,
            logits_dimension=static_head.logits_dimension,
            loss_reduction=static_head.loss_reduction,
        )
        self._head = static_head
        self._mask = sequence_length_mask

    @property
    def static_head(self) -> BaseHead:
        """The head for one step."""
        return self._head

    @property
    def input_sequence_mask_key(self) -> str:
        """The name of the feature with the mask."""
        return self._mask

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Mapping[str, Any] | None = None,
        mode: str | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> jax.Array:
        """Returns the loss of the head for the steps that count."""
        mask = self._read_mask(features)
        with steps_as_rows(mask):
            return self._head.loss(
                self._flat_labels(labels, mask),
                _flat(logits, mask),
                self._flat_features(features, mask),
                mode,
                regularization_losses,
            )

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, jax.Array]:
        """Returns the predictions of the head for all steps."""
        return self._head.predictions(logits, keys)

    def metrics(
        self,
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> dict[str, Metric]:
        """Returns the metrics of the head for the steps that count."""
        mask = self._read_mask(features)
        with steps_as_rows(mask):
            return self._head.metrics(
                self._flat_features(features, mask),
                _flat(logits, mask),
                self._flat_labels(labels, mask),
                mode,
                regularization_losses,
            )

    def export_outputs(self, predictions: Mapping[Any, jax.Array]) -> dict[str, ExportOutput]:
        """Returns the signatures of the head."""
        return self._head.export_outputs(predictions)

    def prediction_transforms(self, head: str | None = None) -> tuple[HostTransform, ...]:
        """See `BaseHead`."""
        return self._head.prediction_transforms(head)

    def evaluation_hooks(self) -> tuple[Hook, ...]:
        """See `BaseHead`."""
        return self._head.evaluation_hooks()

    def label_transforms(self, feature: str = "labels") -> tuple[HostTransform, ...]:
        """See `BaseHead`."""
        return self._head.label_transforms(feature)

    def create_estimator_spec(self, features: Mapping[str, Any], mode: str, *args: Any, **kwargs: Any) -> EstimatorSpec:
        """See `BaseHead.create_estimator_spec`. The predictions include the mask under the name of its feature."""
        spec = super().create_estimator_spec(features, mode, *args, **kwargs)
        mask = self._read_mask(features)
        return replace(spec, predictions={**spec.predictions, self._mask: mask})

    def write_summaries(self, loss: jax.Array, regularization_loss: jax.Array | None) -> None:
        """See `BaseHead`."""
        self._head.write_summaries(loss, regularization_loss)

    def _read_mask(self, features: Mapping[str, Any] | None) -> jax.Array:
        if features is None or self._mask not in features:
            raise ArgumentError(
                f"The provided sequence_length_mask key `{self._mask}` should be included in the features dictionary, "
                f"but was not found. Found keys: {list(features or {})}."
            )
        mask = jnp.asarray(features[self._mask])
        if mask.ndim != 2:
            raise ArgumentError(f"Mask is expected to have two dimensions, got {mask.ndim} instead.")
        return mask.astype(bool)

    def _flat_labels(self, labels: Any, mask: jax.Array) -> Any:
        if labels is not None and are_strings(labels):
            labels = apply_transforms(self._head.label_transforms(), {"labels": np.asarray(labels)})["labels"]
        return None if labels is None else _flat(labels, mask)

    def _flat_features(self, features: Mapping[str, Any] | None, mask: jax.Array) -> dict[str, jax.Array]:
        given = features or {}
        for column in self._columns:
            if column not in given:
                raise ArgumentError(f"`{column}` column expected in features dictionary. Found keys: {list(given)}.")
        return {column: _flat(given[column], mask) for column in self._columns}


def _flat(array: Any, mask: jax.Array) -> jax.Array:
    steps = jnp.asarray(array)
    if steps.ndim < 2:
        raise ArgumentError(f"Input tensor expected to have at least 2 dimensions, got {steps.ndim} instead.")
    if steps.shape[:2] != mask.shape:
        raise ArgumentError(
            f"Tensor shape is incompatible with provided mask. The mask has shape {mask.shape}, the tensor "
            f"{steps.shape}; its first two axes must be the mask's."
        )
    return flat_steps(steps)
