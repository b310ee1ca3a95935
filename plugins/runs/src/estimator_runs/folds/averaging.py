"""The combination of the predictions of several models to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp

#: The names of ids that depend on probabilities in the same predictions.
_IDS, _PROBABILITIES = ("class_ids", "classes"), "probabilities"


def averaged(found: Sequence[Any]) -> Any:
    """Returns the mean of floats, and the most frequent of other values. At a tie, the earliest model counts.

    Ids of classes are those of the largest mean of `probabilities`, if the predictions include these.

    Args:
        found: the predictions of each model: an array, or a dict of arrays, or None.

    Example:
        >>> both = [
        ...     {"probabilities": jnp.array([[0.6, 0.4]]), "class_ids": jnp.array([[0]])},
        ...     {"probabilities": jnp.array([[0.1, 0.9]]), "class_ids": jnp.array([[1]])},
        ... ]
        >>> averaged(both)["class_ids"].tolist()
        [[1]]
    """
    if not isinstance(found[0], Mapping):
        return _combined(found)
    made: dict[Any, Any] = {name: averaged([one[name] for one in found]) for name in found[0]}
    for name, value in made.items():
        beside = (*name[:-1], _PROBABILITIES) if isinstance(name, tuple) else _PROBABILITIES
        last = name[-1] if isinstance(name, tuple) else name
        scores = made.get(beside)
        if last in _IDS and scores is not None and value.shape == (*scores.shape[:-1], 1):
            made[name] = jnp.argmax(scores, axis=-1, keepdims=True).astype(value.dtype)
    return made


def _combined(found: Sequence[Any]) -> Any:
    if found[0] is None:
        return None
    together = jnp.stack([jnp.asarray(one) for one in found])
    if jnp.issubdtype(together.dtype, jnp.inexact):
        return together.mean(axis=0)
    votes = jnp.sum(together[:, None] == together[None], axis=1)
    return jnp.take_along_axis(together, jnp.argmax(votes, axis=0)[None], axis=0)[0]
