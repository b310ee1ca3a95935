"""The choice of the first centres of clusters among points."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp


def random_points(key: jax.Array, points: jax.Array, count: int) -> jax.Array:
    """Returns different points, all equally likely, float32[count, size]."""
    return points[jax.random.choice(key, points.shape[0], (count,), replace=False)]


def kmeans_plus_plus(key: jax.Array, points: jax.Array, count: int, retries: int) -> jax.Array:
    """Returns points far from each other, drawn in proportion to the squared distance to the nearest one before.

    Args:
        key: a random key.
        points: the points, float32[n, size], n >= count.
        count: the number of points to choose.
        retries: the number of further candidates for each point. The best one is chosen. Negative: about the logarithm
            of `count`.

    Source: Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", 2007.
    """
    tries = 1 + (retries if retries >= 0 else int(2 + math.log(count)))
    first_key, *keys = jax.random.split(key, count)
    chosen = [points[jax.random.randint(first_key, (), 0, points.shape[0])]]
    nearest = _squares(points, chosen[0][None])[:, 0]
    for one in keys:
        likely = jnp.log(jnp.maximum(nearest, 1e-30))
        candidates = jax.random.categorical(one, likely, shape=(tries,))
        after = jnp.minimum(nearest[:, None], _squares(points, points[candidates]))
        best = jnp.argmin(after.sum(axis=0))
        chosen.append(points[candidates[best]])
        nearest = after[:, best]
    return jnp.stack(chosen)


def _squares(points: jax.Array, centres: jax.Array) -> jax.Array:
    return jnp.sum((points[:, None] - centres[None]) ** 2, axis=-1)
