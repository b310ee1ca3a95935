"""Several heads on one model."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentError
from estimator_core.export import PredictOutput
from estimator_core.metrics import mean
from estimator_core.modes import ModeKeys
from estimator_heads.base_head import BaseHead, add_losses
from estimator_heads.checks import NO_LABELS
from estimator_heads.keys import DEFAULT_SERVING_KEY, PREDICT_SERVING_KEY, MetricKeys
from estimator_heads.train_op import write_summaries

if TYPE_CHECKING:
    from estimator_core.export import ExportOutput
    from estimator_core.hooks import Hook
    from estimator_core.inputs import HostTransform
    from estimator_core.metrics import Metric
    from estimator_heads.data.rule import DataRule


class MultiHead(BaseHead):
    """Several heads that share a model. Losses are added. Predictions and metrics stay separate.

    Labels are a dict by head name. Logits are such a dict, or one array that is split in the order of the heads.
    Predictions have the keys `(head name, key)`. The first head is served by default.

    Args:
        heads: heads with different names.
        head_weights: the factor of the loss of each head, at least 0. None: 1.

    Raises:
        ArgumentError: there are no heads, a head has no name, a name occurs twice, the number of weights is wrong, or a
            weight is negative or not finite.

    Example:
        >>> import numpy as np
        >>> from estimator_heads import BinaryClassHead, RegressionHead
        >>> head = MultiHead([BinaryClassHead(name="click"), RegressionHead(name="price")], head_weights=[1.0, 0.5])
        >>> labels = {"click": np.array([[1]]), "price": np.array([[3.0]])}
        >>> round(float(head.loss(labels, logits=np.array([[0.0, 1.0]]))), 4)
        2.6931

    Source: `tf.estimator.MultiHead`.
    """

    def __init__(self, heads: Sequence[BaseHead], head_weights: Sequence[float] | None = None) -> None:
        if not heads:
            raise ArgumentError(f"Must specify heads. Given: {heads}")
        weights = [] if head_weights is None else list(head_weights)
        if weights and len(weights) != len(heads):
            raise ArgumentError(
                f"heads and head_weights must have the same size. Given len(heads): {len(heads)}. "
                f"Given len(head_weights): {len(weights)}."
            )
        names: list[str] = []
        for head in heads:
            if head.name is None:
                raise ArgumentError(f"All given heads must have name specified. Given: {head}")
            names.append(head.name)
        if len(set(names)) != len(names):
            raise ArgumentError(f"Heads must have different names. Given: {names}.")
        super().__init__(name="_".join(names), logits_dimension=sum(head.logits_dimension for head in heads))
        self._heads = dict(zip(names, heads, strict=True))
        self._weights = tuple(map(_checked_weight, weights or [1.0] * len(heads), names))

    @property
    def heads(self) -> Mapping[str, BaseHead]:
        """The heads by name. The first one is served by default."""
        return dict(self._heads)

    @property
    def loss_reduction(self) -> str:
        """The reduction of all heads.

        Raises:
            ArgumentError: the reductions differ.
        """
        reductions = [head.loss_reduction for head in self._heads.values()]
        if len(set(reductions)) > 1:
            raise ArgumentError(f"The loss_reduction must be the same for different heads. Given: {reductions}")
        return reductions[0]

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Mapping[str, Any] | None = None,
        mode: str | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> jax.Array:
        """Returns the weighted sum of the losses of the heads, including the regularization losses.

        In training, the loss of each head is written as the summary `loss/<head>`.

        Raises:
            ArgumentError: the heads reduce their losses differently.
        """
        losses = self._losses(self._by_head(logits, labels), labels, features, mode)
        if mode == ModeKeys.TRAIN:
            _ = self.loss_reduction
            for name, loss in losses.items():
                write_summaries(name, loss, None)
        weighted = [weight * losses[name] for weight, name in zip(self._weights, losses, strict=True)]
        return add_losses(jnp.sum(jnp.stack(weighted)), regularization_losses)

    def predictions(self, logits: Any, keys: Sequence[Any] | None = None) -> dict[Any, jax.Array]:
        """Returns the predictions of all heads by `(head name, key)`. `keys` are such pairs.

        Raises:
            ArgumentError: a head or key is unknown.
        """
        by_head = self._by_head(logits)
        wanted: dict[str, list[str] | None] = dict.fromkeys(self._heads)
        if keys:
            wanted = {}
            for pair in keys:
                if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] not in self._heads:
                    raise ArgumentError(
                        f"Prediction keys of a MultiHead are (head, key) with a head of {list(self._heads)}; given: "
                        f"{pair!r}."
                    )
                chosen = wanted.setdefault(pair[0], [])
                if chosen is not None:
                    chosen.append(pair[1])
        return {
            (name, key): value
            for name, own_keys in wanted.items()
            for key, value in self._heads[name].predictions(by_head[name], own_keys).items()
        }

    def metrics(
        self,
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> dict[str, Metric]:
        """Returns `loss/<head>` for each head (the mean over batches), and the metrics of all heads."""
        by_head = self._by_head(logits, labels)
        found = self._regularization_metric(regularization_losses)
        for name, loss in self._losses(by_head, labels, features, mode).items():
            found[f"{MetricKeys.LOSS}/{name}"] = mean(loss)
        for name, head in self._heads.items():
            found |= head.metrics(features, by_head[name], labels[name], mode)
        return found

    def export_outputs(self, predictions: Mapping[Any, jax.Array]) -> dict[str, ExportOutput]:
        """Returns the serving signatures of all heads.

        They are the default signature of the first head, the outputs of every head as `<head>` and `<head>/<key>`, and
        all predictions.
        """
        found: dict[str, ExportOutput] = {}
        merged: dict[str, jax.Array] = {}
        for name, head in self._heads.items():
            own = {key: value for (owner, key), value in predictions.items() if owner == name}
            outputs = head.export_outputs(own)
            found.setdefault(DEFAULT_SERVING_KEY, outputs[DEFAULT_SERVING_KEY])
            for key, output in outputs.items():
                found[name if key == DEFAULT_SERVING_KEY else f"{name}/{key}"] = output
            everything = outputs.get(PREDICT_SERVING_KEY)
            if isinstance(everything, PredictOutput):
                merged |= {f"{name}/{key}": value for key, value in everything.outputs.items()}
        found[PREDICT_SERVING_KEY] = PredictOutput(merged)
        return found

    def prediction_transforms(self, head: str | None = None) -> tuple[HostTransform, ...]:
        """Returns the transforms of all heads, each for its own predictions."""
        return tuple(
            transform for name, part in self._heads.items() for transform in part.prediction_transforms(head=name)
        )

    def label_transforms(self, feature: str = "labels") -> tuple[HostTransform, ...]:
        """Returns the transforms of all heads, each for its own labels. `feature` is ignored."""
        return tuple(transform for name, head in self._heads.items() for transform in head.label_transforms(name))

    def label_rules(self) -> dict[str, DataRule]:
        """Returns the label rules of all heads."""
        return {name: head.label_rules()[""] for name, head in self._heads.items() if head.label_rules()}

    def weight_rules(self) -> dict[str, DataRule]:
        """Returns the weight rules of all heads."""
        return {key: rule for head in self._heads.values() for key, rule in head.weight_rules().items()}

    def with_class_names(self, names: Mapping[str, Sequence[str]]) -> Self:
        """Returns a copy whose heads have these class names."""
        made = copy.copy(self)
        vars(made)["_heads"] = {
            name: head.with_class_names({"": names[name]}) if name in names else head
            for name, head in self._heads.items()
        }
        return made

    def evaluation_hooks(self) -> tuple[Hook, ...]:
        """Returns the hooks of all heads."""
        return tuple(hook for head in self._heads.values() for hook in head.evaluation_hooks())

    def write_summaries(self, loss: jax.Array, regularization_loss: jax.Array | None) -> None:
        """Writes the summary `regularization_loss`. `loss` writes the losses of the heads."""
        write_summaries(None, loss, regularization_loss)

    def _losses(
        self, logits: Mapping[str, Any], labels: Any, features: Mapping[str, Any] | None, mode: str | None
    ) -> dict[str, jax.Array]:
        if labels is None:
            raise ArgumentError(NO_LABELS)
        return {name: head.loss(labels[name], logits[name], features, mode) for name, head in self._heads.items()}

    def _by_head(self, logits: Any, labels: Any = None) -> Mapping[str, Any]:
        """Returns logits by head name. Checks that every head has logits, and labels if there are labels."""
        if labels is not None:
            if not isinstance(labels, Mapping):
                raise ArgumentError(f"labels must be a dict. Given: {labels}")
            _check_names("labels", self._heads, labels)
        if isinstance(logits, Mapping):
            _check_names("logits", self._heads, logits)
            return logits
        return self._split(jnp.asarray(logits))

    def _split(self, logits: jax.Array) -> dict[str, jax.Array]:
        sizes = [head.logits_dimension for head in self._heads.values()]
        last = logits.shape[-1] if logits.ndim else 0
        if last != sum(sizes):
            raise ArgumentError(
                f"Could not split logits of shape {list(logits.shape)} among the heads with individual logits "
                f"dimensions: {sizes}. The last dimension of the logits tensor should equal {sum(sizes)} but is {last}."
            )
        ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
        return dict(zip(self._heads, jnp.split(logits, ends[:-1], axis=-1), strict=True))


def _check_names(what: str, heads: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    missing = [name for name in heads if name not in given]
    if missing:
        raise ArgumentError(f"{what} has missing values for head(s): {missing}")


def _checked_weight(weight: Any, name: str) -> float:
    try:
        number = float(weight)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise ArgumentError(
            f"head_weights must be finite and at least 0. Given for the head {name!r}: {weight!r}. 0 leaves its loss "
            "out of the sum."
        )
    return number
