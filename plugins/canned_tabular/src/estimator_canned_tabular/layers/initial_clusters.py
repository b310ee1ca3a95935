"""The choice of the first centres of clusters among points."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp


def random_points(key: jax.Array, points: jax.Array, count: int, real: jax.Array | None = None) -> jax.Array:
    """Returns different points, all equally likely, float32[count, size].

    `real` is 0 for points that only fill up the batch. They are chosen only if there are too few others.
    """
    likely = None if real is None else real / real.sum()
    return points[jax.random.choice(key, points.shape[0], (count,), replace=False, p=likely)]


def repeated(points: jax.Array, real: jax.Array) -> jax.Array:
    """Returns the points with those in front that do not fill up the batch. Their repetitions replace the others.

    Example:
        >>> points, real = jnp.array([[1.0], [9.0], [2.0]]), jnp.array([1.0, 0.0, 1.0])
        >>> repeated(points, real).tolist()
        [[1.0], [2.0], [1.0]]
    """
    order = jnp.argsort(real <= 0, stable=True)
    count = jnp.maximum(jnp.sum(real > 0), 1)
    return points[order[jnp.arange(points.shape[0]) % count]]


def kmeans_plus_plus(
    key: jax.Array, points: jax.Array, count: int, retries: int, real: jax.Array | None = None
) -> jax.Array:
    """Returns points far from each other, drawn in proportion to the squared distance to the nearest one before.

    Args:
        key: a random key.
        points: the points, float32[n, size], n >= count.
        count: the number of points to choose.
        retries: the number of further candidates for each point. The best one is chosen. Negative: about the logarithm
            of `count`.
        real: 0 for points that only fill up the batch, which are not chosen. None: there are no such points.

    Source: Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", 2007.
    """
    tries = 1 + (retries if retries >= 0 else int(2 + math.log(count)))
    first_key, *keys = jax.random.split(key, count)
    if real is None:
        first = jax.random.randint(first_key, (), 0, points.shape[0])
    else:
        first = jax.random.categorical(first_key, jnp.log(real))
    counted = jnp.ones(points.shape[0]) if real is None else real
    chosen = [points[first]]
    nearest = _squares(points, chosen[0][None])[:, 0] * counted
    for one in keys:
        likely = jnp.where(counted > 0, jnp.log(jnp.maximum(nearest, 1e-30)), -jnp.inf)
        candidates = jax.random.categorical(one, likely, shape=(tries,))
        after = jnp.minimum(nearest[:, None], _squares(points, points[candidates]))
        best = jnp.argmin(after.sum(axis=0))
        chosen.append(points[candidates[best]])
        nearest = after[:, best]
    return jnp.stack(chosen)


def _squares(points: jax.Array, centres: jax.Array) -> jax.Array:
    return jnp.sum((points[:, None] - centres[None]) ** 2, axis=-1)
