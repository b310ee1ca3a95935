"""The optimizer: clipping, AdamW, weight decay, layer factors and learning rate, in the order of the original."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import optax

from estimator_canned_bert.config import BertConfig
from estimator_canned_bert.optimization.adam import scale_by_bert_adam
from estimator_canned_bert.optimization.groups import decays, layer_scales
from estimator_canned_bert.optimization.schedule import warmup_linear_decay
from estimator_core.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class Optimization:
    """The settings of fine-tuning. The defaults are those of google-research/bert.

    Args:
        weight_decay: the factor of the term `weight_decay * weight` in the update of each variable that `decays`.
        b1, b2, epsilon: the arguments of Adam.
        bias_correction: whether to correct the first steps of Adam. google-research/bert does not; transformers does.
        clip_norm: the maximum norm of all gradients together. Larger gradients are scaled down. None: no maximum.
        layer_decay: the factor on the learning rate from each layer to the one below it. 1: equal rates.
        frozen: a regular expression of the names of variables that are not trained.
        frozen_layers: the number of layers, from the embeddings up, that are not trained. 0: only the embeddings; -1:
            all are trained.
        ema_decay: the decay of the average of the weights that evaluation and prediction use. It covers about `1 / (1 -
            ema_decay)` steps. None: no average.

    Raises:
        ArgumentError: a value cannot be used.

    Source: `optimization.py` of google-research/bert.
    """

    weight_decay: float = 0.01
    b1: float = 0.9
    b2: float = 0.999
    epsilon: float = 1e-6
    bias_correction: bool = False
    clip_norm: float | None = 1.0
    layer_decay: float = 1.0
    frozen: str | None = None
    frozen_layers: int = -1
    ema_decay: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.layer_decay <= 1:
            raise ArgumentError(f"layer_decay should lie in (0, 1], given: {self.layer_decay!r}.")
        if self.ema_decay is not None and not 0 < self.ema_decay < 1:
            raise ArgumentError(f"ema_decay should lie between 0 and 1, given: {self.ema_decay!r}.")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ArgumentError(f"clip_norm should be positive or None, given: {self.clip_norm!r}.")
        if not (self.weight_decay >= 0 and self.epsilon > 0):
            raise ArgumentError(
                f"weight_decay should be at least 0 and epsilon positive, given: {self.weight_decay!r} and "
                f"{self.epsilon!r}."
            )


def create_optimizer(
    learning_rate: float | Callable[[Any], Any],
    num_train_steps: int | None = None,
    num_warmup_steps: int = 0,
    *,
    config: BertConfig | None = None,
    options: Optimization | None = None,
) -> optax.GradientTransformation:
    """Returns the optimizer of a fine-tuning run, for a dictionary of variables by name.

    Args:
        learning_rate: the highest rate, for `warmup_linear_decay`, or a schedule (a function of the step).
        num_train_steps: the step at which the rate reaches zero. None: the rate is constant after the warm-up.
        num_warmup_steps: the number of warm-up steps.
        config: the shape of the encoder, which `layer_decay` needs.
        options: the other settings.

    Raises:
        ArgumentError: a value cannot be used.

    Example:
        >>> import jax.numpy as jnp
        >>> tx = create_optimizer(1e-3, 100, 10)
        >>> state = tx.init({"output_bias": jnp.zeros(2)})

    Source: `optimization.create_optimizer` of google-research/bert.
    """
    chosen = options or Optimization()
    if chosen.layer_decay != 1 and config is None:
        raise ArgumentError("layer_decay needs the configuration of the encoder: create_optimizer(..., config=config).")
    schedule = _schedule(learning_rate, num_train_steps, num_warmup_steps)

    def build(learning_rate: Any) -> optax.GradientTransformation:
        adam = optax.scale_by_adam if chosen.bias_correction else scale_by_bert_adam
        parts = [
            optax.clip_by_global_norm(chosen.clip_norm) if chosen.clip_norm is not None else optax.identity(),
            adam(b1=chosen.b1, b2=chosen.b2, eps=chosen.epsilon),
            optax.add_decayed_weights(chosen.weight_decay, mask=_decayed),
        ]
        if chosen.layer_decay != 1:
            assert config is not None
            parts.append(_scaled_by_layer(config, chosen.layer_decay))
        return optax.chain(*parts, optax.scale_by_learning_rate(learning_rate))

    return optax.inject_hyperparams(build)(learning_rate=schedule)


def _schedule(learning_rate: Any, num_train_steps: int | None, num_warmup_steps: int) -> Callable[[Any], Any]:
    if callable(learning_rate):
        return learning_rate
    if isinstance(learning_rate, bool) or not isinstance(learning_rate, int | float) or learning_rate <= 0:
        raise ArgumentError(f"learning_rate should be a positive number or a schedule, given: {learning_rate!r}.")
    if num_train_steps is not None:
        return warmup_linear_decay(float(learning_rate), num_train_steps, num_warmup_steps)
    return (
        optax.linear_schedule(0.0, float(learning_rate), num_warmup_steps)
        if num_warmup_steps
        else (lambda _: float(learning_rate))
    )


def _decayed(tree: Any) -> dict[str, bool]:
    return {name: decays(name) for name in tree}


def _scaled_by_layer(config: BertConfig, decay: float) -> optax.GradientTransformation:
    def scale(updates: Any, params: Any = None) -> Any:
        del params
        factors = layer_scales(updates, config, decay)
        return {name: jax.tree.map(lambda leaf, name=name: leaf * factors[name], updates[name]) for name in updates}

    return optax.stateless(scale)
