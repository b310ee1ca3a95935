"""Log loss of probabilities, and perplexity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentError
from estimator_core.metrics import Mean, mean, same_shape

if TYPE_CHECKING:
    from jax.typing import ArrayLike


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Perplexity(Mean):
    """The exponential of a mean."""

    def compute(self) -> float:
        """Returns exp(mean), or infinity if it exceeds float64."""
        average = super().compute()
        return math.exp(average) if average < 709.0 or math.isnan(average) else math.inf


def log_loss(labels: ArrayLike, probabilities: ArrayLike, weights: ArrayLike | None = None) -> Mean:
    """Returns the mean negative logarithm of the probability of the label.

    Probabilities are clipped to [eps, 1 - eps] with the eps of float32. A probability outside [0, 1] makes the value
    NaN. For logits, average a loss of `estimator_heads.losses` instead.

    Args:
        labels: class ids [batch, ...] or [batch, ..., 1]. Or numbers in [0, 1] with the shape of the probabilities. A
            label out of range makes the value NaN.
        probabilities: [batch, ..., classes] for class ids; the probability of 1 otherwise.
        weights: a scalar, [batch], [batch, 1] or one weight per example.

    Raises:
        ArgumentError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> round(log_loss(np.array([1, 0]), np.array([0.5, 0.5])).compute(), 6)
        0.693147
        >>> round(log_loss(np.array([2]), np.array([[0.25, 0.25, 0.5]])).compute(), 6)
        0.693147
    """
    p, y = jnp.asarray(probabilities, jnp.float32), jnp.asarray(labels)
    eps = float(jnp.finfo(jnp.float32).eps)
    clipped = jnp.where((p >= 0.0) & (p <= 1.0), jnp.clip(p, eps, 1.0 - eps), jnp.nan)
    if p.ndim == y.ndim and y.shape[-1:] == (1,) and p.shape[-1] > 1:
        y = y[..., 0]
    # [batch] labels with [batch, 1] probabilities of 1 are binary. With [batch, n] probabilities, they are class ids.
    if p.ndim == y.ndim + 1 and p.shape[-1] > 1:
        if y.shape != p.shape[:-1]:
            raise ArgumentError(f"log_loss: labels of shape {y.shape} do not match probabilities of shape {p.shape}.")
        inside = (y >= 0) & (y < p.shape[-1])
        chosen = jnp.take_along_axis(clipped, jnp.where(inside, y, 0)[..., None], axis=-1)[..., 0]
        return mean(jnp.where(inside, -jnp.log(chosen), jnp.nan), weights)
    soft, clipped = same_shape(y.astype(jnp.float32), clipped, metric="log_loss")
    soft = jnp.where((soft >= 0.0) & (soft <= 1.0), soft, jnp.nan)
    return mean(-(soft * jnp.log(clipped) + (1.0 - soft) * jnp.log1p(-clipped)), weights)


def perplexity(losses: ArrayLike, weights: ArrayLike | None = None) -> Perplexity:
    """Returns the exponential of the mean loss.

    Args:
        losses: negative log likelihoods in nats, [batch, ...], for example one per token.
        weights: a scalar, [batch], [batch, 1] or the full shape; 0 for tokens that are padding.

    Example:
        >>> import numpy as np
        >>> round(perplexity(np.log(np.array([2.0, 8.0]))).compute(), 5)
        4.0
    """
    average = mean(losses, weights)
    return Perplexity(total=average.total, weight=average.weight)
