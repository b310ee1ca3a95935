"""Rows that hold several sentences: the mask of each sentence, and the position of a token in its sentence."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def same_sentence(sentences: jax.Array) -> jax.Array:
    """Returns whether two places of a row belong to one sentence, or both to padding: bool [rows, 1, length, length].

    Args:
        sentences: int [rows, length], the number of the sentence of each token, 0 for padding.
    """
    return (sentences[:, :, None] == sentences[:, None, :])[:, None]


def places_in_sentence(sentences: jax.Array) -> jax.Array:
    """Returns the position of every token in its own sentence, from 0. Padding has the position 0.

    Args:
        sentences: int [rows, length], the number of the sentence of each token, 0 for padding.

    Example:
        >>> places_in_sentence(jnp.array([[1, 1, 1, 2, 2, 0]])).tolist()
        [[0, 1, 2, 0, 1, 0]]
    """
    at = jnp.arange(sentences.shape[1])
    before = jnp.pad(sentences[:, :-1], ((0, 0), (1, 0)), constant_values=-1)
    begins = jax.lax.cummax(jnp.where(sentences != before, at, 0), axis=1)
    return jnp.where(sentences > 0, at - begins, 0)
