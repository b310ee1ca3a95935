"""Sigmoid and softmax cross entropy, with the options of `LossOptions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from estimator_heads.losses.options import LossOptions

if TYPE_CHECKING:
    from jax import Array

_PLAIN = LossOptions()


def sigmoid_cross_entropy(labels: Array, logits: Array, options: LossOptions = _PLAIN) -> Array:
    """Returns the cross entropy of independent yes-or-no labels.

    Args:
        labels: numbers in [0, 1], including soft labels, with the shape of `logits`.
        logits: an array of any shape. The loss is computed in float32.
        options: the smoothing, focal exponent and (negative, positive) class weights.

    Returns:
        float32 with the shape of `logits`. Finite for finite logits.

    Example:
        >>> import jax.numpy as jnp
        >>> sigmoid_cross_entropy(jnp.array([1.0, 0.0]), jnp.array([-41.0, -1e4])).tolist()
        [41.0, 0.0]

    Source: `tf.nn.sigmoid_cross_entropy_with_logits`.
    """
    x = jnp.asarray(logits, jnp.float32)
    target = jnp.asarray(labels, jnp.float32)
    if options.label_smoothing:
        target = target * (1.0 - options.label_smoothing) + 0.5 * options.label_smoothing
    minus_log_p, minus_log_not_p = jax.nn.softplus(-x), jax.nn.softplus(x)
    positive, negative = target * minus_log_p, (1.0 - target) * minus_log_not_p
    if options.focal_gamma:
        # (1 - p)**gamma is computed from logarithms. The power of a difference that rounds to 0 has an infinite
        # gradient.
        positive = positive * jnp.exp(-options.focal_gamma * minus_log_not_p)
        negative = negative * jnp.exp(-options.focal_gamma * minus_log_p)
    if options.class_weights is not None:
        negative, positive = negative * options.class_weights[0], positive * options.class_weights[1]
    return positive + negative


def softmax_cross_entropy(labels: Array, logits: Array, options: LossOptions = _PLAIN) -> Array:
    """Returns the cross entropy of one of several classes.

    Args:
        labels: integer class ids [D0, ..., DN]. An id outside [0, classes) is clipped.
        logits: [D0, ..., DN, classes]. The loss is computed in float32.
        options: the smoothing, focal exponent and class weights.

    Returns:
        float32 [D0, ..., DN]. Finite for finite logits.

    Example:
        >>> import jax.numpy as jnp
        >>> float(softmax_cross_entropy(jnp.array([1]), jnp.array([[10000.0, 0.0, 0.0]]))[0])
        10000.0

    Source: `tf.nn.sparse_softmax_cross_entropy_with_logits`.
    """
    x = jnp.asarray(logits, jnp.float32)
    classes = x.shape[-1]
    log_p = jax.nn.log_softmax(x)
    ids = jnp.clip(jnp.asarray(labels), 0, classes - 1)
    if options == _PLAIN:
        return -jnp.take_along_axis(log_p, ids[..., None], axis=-1)[..., 0]
    target = jax.nn.one_hot(ids, classes, dtype=jnp.float32)
    if options.label_smoothing:
        target = target * (1.0 - options.label_smoothing) + options.label_smoothing / classes
    losses = -log_p * target
    if options.focal_gamma:
        losses = losses * jnp.exp(options.focal_gamma * _log_of_the_others(x))
    if options.class_weights is not None:
        losses = losses * jnp.asarray(options.class_weights, jnp.float32)
    return jnp.sum(losses, axis=-1)


def _log_of_the_others(logits: Array) -> Array:
    """Returns log(1 - softmax) for each class: the logsumexp of the other classes minus that of all classes."""
    classes = logits.shape[-1]
    others = jnp.where(jnp.eye(classes, dtype=bool), -jnp.inf, logits[..., None, :])
    return jax.nn.logsumexp(others, axis=-1) - jax.nn.logsumexp(logits, axis=-1, keepdims=True)
