"""K-means clustering, full or mini-batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_canned_tabular.columns.checks import listed
from estimator_canned_tabular.host.plan import FeaturePlan
from estimator_canned_tabular.layers.dense_features import check_dense, dense_features
from estimator_canned_tabular.layers.initial_clusters import kmeans_plus_plus, random_points, repeated
from estimator_canned_tabular.models.enough_points import EnoughPoints
from estimator_canned_tabular.models.stop_when_settled import StopWhenSettled
from estimator_core.errors import ArgumentError, check_count, is_integer

RANDOM, PLUS_PLUS = "random", "kmeans_plus_plus"
SQUARED_EUCLIDEAN, COSINE = "squared_euclidean", "cosine"
ALL_DISTANCES, CLUSTER_INDEX, SCORE, CLUSTERS = "all_distances", "cluster_index", "score", "clusters"
#: The variable that records whether the first clusters are chosen.
CHOSEN = "clusters_chosen"
#: The core reads this feature as the mask of real rows, so it is not a coordinate.
_IS_REAL_EXAMPLE = "is_real_example"


@dataclass(frozen=True, kw_only=True)
class KMeansOptions:
    """The arguments of `KMeans`, which documents them."""

    num_clusters: int
    initial_clusters: Any = RANDOM
    distance_metric: str = SQUARED_EUCLIDEAN
    seed: int | None = None
    use_mini_batch: bool = True
    mini_batch_steps_per_iteration: int = 1
    kmeans_plus_plus_num_retries: int = 2
    relative_tolerance: float | None = None

    def __post_init__(self) -> None:
        if not is_integer(self.num_clusters) or self.num_clusters < 1:
            raise ArgumentError(f"num_clusters must be a positive integer, given: {self.num_clusters!r}.")
        check_count("num_clusters", self.num_clusters)  # refuses a number of more than 64 bits
        check_count("kmeans_plus_plus_num_retries", self.kmeans_plus_plus_num_retries, least=0)
        if self.seed is not None:
            check_count("seed", self.seed, least=0)
        if self.distance_metric not in (SQUARED_EUCLIDEAN, COSINE):
            raise ArgumentError(f"Unsupported distance metric passed to Kmeans: {self.distance_metric!r}.")
        if isinstance(self.initial_clusters, str) and self.initial_clusters not in (RANDOM, PLUS_PLUS):
            raise ArgumentError(f"Unsupported initialization algorithm: {self.initial_clusters!r}.")
        every = self.mini_batch_steps_per_iteration
        if not is_integer(every) or every < 1:
            raise ArgumentError(f"mini_batch_steps_per_iteration must be a positive integer, given: {every!r}.")
        check_count("mini_batch_steps_per_iteration", every)  # refuses a number of more than 64 bits


def kmeans_model_fn(options: KMeansOptions, feature_columns: Sequence[Any] | None = None) -> Callable[..., Any]:
    """Returns the model_fn of `KMeans`, which keeps the clusters as a variable.

    Raises:
        ArgumentError: a column is not dense.

    Example:
        >>> model_fn = kmeans_model_fn(KMeansOptions(num_clusters=3))
    """
    columns = listed(feature_columns or (), "feature_columns")
    if columns:
        check_dense(columns, "feature_columns")
    plan = FeaturePlan.of(columns)

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        points = _points(features, columns, plan)
        if options.distance_metric == COSINE:
            points = _unit(points)
        stored, clusters = _clusters(options, points, mode)
        distances = _distances(options, points, clusters)
        index = jnp.argmin(distances, axis=1).astype(jnp.int32)
        nearest = jnp.min(distances, axis=1)
        real = _real(points)
        score = jnp.sum(nearest if real is None else nearest * real)
        loss = score
        if mode == ec.ModeKeys.TRAIN:
            loss = score + _moving(stored, _updated(options, points, index, clusters))
        hooks: list[ec.Hook] = [EnoughPoints(options.num_clusters, _chosen())] if _among_points(options) else []
        hooks += [] if options.relative_tolerance is None else [StopWhenSettled(options.relative_tolerance)]
        predict = ec.export.PredictOutput
        return ec.EstimatorSpec(
            mode,
            predictions={ALL_DISTANCES: distances, CLUSTER_INDEX: index},
            loss=loss,
            train_op=optax.sgd(1.0),
            eval_metric_ops={SCORE: ec.metrics.mean(score)},
            training_hooks=hooks,
            export_outputs={
                ALL_DISTANCES: predict({ALL_DISTANCES: distances}),
                CLUSTER_INDEX: predict({CLUSTER_INDEX: index}),
                "serving_default": predict({CLUSTER_INDEX: index}),
            },
        )

    model_fn.host_transforms = plan.transforms()  # type: ignore[attr-defined]
    return model_fn


def _among_points(options: KMeansOptions) -> bool:
    """Returns whether the first clusters are points of the first batch."""
    return isinstance(options.initial_clusters, str)


def _chosen() -> str:
    """Returns the path of `CHOSEN`, which is in the scope of the clusters. A caller may have opened variable scopes."""
    names = reversed([variable.name for variable in ec.trainable_variables()])
    return next(name for name in names if name.rpartition("/")[2] == CLUSTERS).removesuffix(CLUSTERS) + CHOSEN


def _points(features: Any, columns: Sequence[Any], plan: FeaturePlan) -> jax.Array:
    if columns:
        return dense_features(columns, features, plan, scope="kmeans", row_sparse=False)
    if not isinstance(features, Mapping):
        return jnp.asarray(features, jnp.float32)
    names = sorted(name for name in features if name != _IS_REAL_EXAMPLE)
    parts = [jnp.asarray(features[name], jnp.float32) for name in names]
    return jnp.concatenate([part.reshape(part.shape[0], -1) for part in parts], axis=1)


def _clusters(options: KMeansOptions, points: jax.Array, mode: str) -> tuple[jax.Array, jax.Array]:
    """Returns the variable, and the centres at the start of the step. The first batch sets the first ones."""
    given = options.initial_clusters
    shape = (options.num_clusters, points.shape[1])
    if not isinstance(given, str) and not callable(given):
        centres = np.asarray(given, np.float32)
        if centres.shape != shape:
            raise ArgumentError(f"initial_clusters must have shape {shape}, given: {centres.shape}.")
        if options.distance_metric == COSINE:
            centres = centres / np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
        given_clusters = ec.get_variable(CLUSTERS, initializer=centres)
        return given_clusters, jax.lax.stop_gradient(given_clusters)
    clusters = ec.get_variable(CLUSTERS, shape, jax.nn.initializers.zeros)
    chosen = ec.get_variable(CHOSEN, (), jax.nn.initializers.zeros, dtype="bool", trainable=False)
    if mode != ec.ModeKeys.TRAIN:
        return clusters, clusters
    key = ec.next_rng_key("clusters") if options.seed is None else jax.random.key(options.seed)
    real = _real(points)
    if callable(given):
        shown = points if real is None else repeated(points, real)
        first = jnp.asarray(given(shown, options.num_clusters), jnp.float32)
        if first.shape != shape:
            raise ArgumentError(f"initial_clusters must return all {shape} centres from one batch, not {first.shape}.")
    elif points.shape[0] < options.num_clusters:  # a later batch: `EnoughPoints` refuses such a first one
        first = clusters
    elif given == RANDOM:
        first = random_points(key, points, options.num_clusters, real)
    else:
        first = kmeans_plus_plus(key, points, options.num_clusters, options.kmeans_plus_plus_num_retries, real)
    ec.set_variable(CHOSEN, jnp.ones((), bool))
    first = _of_metric(options, first)
    return clusters, jax.lax.stop_gradient(jnp.where(chosen, clusters, first))


def _distances(options: KMeansOptions, points: jax.Array, clusters: jax.Array) -> jax.Array:
    if options.distance_metric == COSINE:
        return 1.0 - points @ _unit(clusters).T
    return jnp.sum((points[:, None] - clusters[None]) ** 2, axis=-1)


def _real(points: jax.Array) -> jax.Array | None:
    """Returns 1 for each point, and 0 for those that only fill up the batch. None: there are no such points."""
    weights = ec.example_weights()
    return None if weights is None else (weights > 0).astype(points.dtype)


def _moving(stored: jax.Array, target: jax.Array) -> jax.Array:
    """Returns zero, with the gradient by which a step of rate 1 moves `stored` to the target."""
    return jnp.sum(jax.lax.stop_gradient(stored - target) * (stored - jax.lax.stop_gradient(stored)))


def _updated(options: KMeansOptions, points: jax.Array, index: jax.Array, clusters: jax.Array) -> jax.Array:
    """Returns the next centres, after a step of Lloyd or of mini-batch k-means.

    In a mini-batch, centres move to the mean of all their points so far. The first centre counts as a point. With
    several steps per iteration it does not, and every iteration starts a new count.
    """
    real = _real(points)
    real = jnp.ones(index.shape) if real is None else real
    count = jax.ops.segment_sum(real, index, options.num_clusters)
    total = jax.ops.segment_sum(points * real[:, None], index, options.num_clusters)
    if not options.use_mini_batch:
        means = total / jnp.maximum(count, 1.0)[:, None]
        return _of_metric(options, jnp.where(count[:, None] > 0, means, clusters))
    zeros, every = jax.nn.initializers.zeros, options.mini_batch_steps_per_iteration
    begin = jax.nn.initializers.ones if every == 1 else zeros
    counts = ec.get_variable("cluster_counts", (options.num_clusters,), begin, trainable=False)
    after = counts + count
    rate = 1.0 / jnp.maximum(after, 1.0)[:, None]
    if every == 1:
        ec.set_variable("cluster_counts", after)
        return clusters + (total - count[:, None] * clusters) * rate
    steps = ec.get_variable("steps_of_iteration", (), zeros, dtype="int32", trainable=False)
    waiting = ec.get_variable("clusters_updated", clusters.shape, zeros, trainable=False)
    moved = jnp.where(steps == 0, clusters, waiting)
    moved = moved + (total - count[:, None] * moved) * rate
    last = steps + 1 == every
    ec.set_variable("cluster_counts", jnp.where(last, 0.0, after))
    ec.set_variable("clusters_updated", moved)
    ec.set_variable("steps_of_iteration", jnp.where(last, 0, steps + 1))
    return jnp.where(last, _of_metric(options, moved), clusters)


def _of_metric(options: KMeansOptions, centres: jax.Array) -> jax.Array:
    """Returns centres as they are stored, of length 1 for cosines. Single mini-batch steps do not scale them."""
    return _unit(centres) if options.distance_metric == COSINE else centres


def _unit(rows: jax.Array) -> jax.Array:
    return rows / jnp.maximum(jnp.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
