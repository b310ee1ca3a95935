"""`KMeans`: clusters of points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_canned_tabular.models.kmeans import (
    ALL_DISTANCES,
    CLUSTER_INDEX,
    CLUSTERS,
    RANDOM,
    SCORE,
    SQUARED_EUCLIDEAN,
    KMeansOptions,
    kmeans_model_fn,
)


class KMeans(ec.Estimator):
    """Clusters points with full-batch or mini-batch k-means.

    Args:
        num_clusters: the number of clusters.
        model_dir: see `ec.Estimator`.
        initial_clusters: "random" or "kmeans_plus_plus", both from the first batch; an array
            float32[num_clusters, size]; or a function `(points, num_clusters)` that returns one (traced by JAX).
            In a padded batch, the function receives repetitions of the first points instead of the padding.
        distance_metric: "squared_euclidean" or "cosine".
        seed: the seed of the choice of the first clusters. None: the seed of the run.
        use_mini_batch: whether centres move to the mean of all their points so far, in which the first centre counts as
            a point. False: they move to the mean of the batch, which must be the whole input.
        mini_batch_steps_per_iteration: the number of steps between two replacements of the centres.
        kmeans_plus_plus_num_retries: the number of further candidates for each first centre.
        relative_tolerance: training stops when the relative change of the loss is smaller.
        config: see `ec.Estimator`.
        feature_columns: dense columns; None: all features, sorted by name.
        plugins: see `ec.Estimator`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> import numpy as np
        >>> points = np.array([[0, 0], [0, 1], [10, 10], [10, 11]], np.float32)
        >>> kmeans = KMeans(2, initial_clusters=[[0, 0], [10, 10]], use_mini_batch=False)
        >>> _ = kmeans.train(lambda: [{"x": points}], steps=1)
        >>> kmeans.cluster_centers().tolist()
        [[0.0, 0.5], [10.0, 10.5]]

    Source: `tf.compat.v1.estimator.experimental.KMeans`.
    """

    def __init__(
        self,
        num_clusters: int,
        model_dir: str | None = None,
        initial_clusters: Any = RANDOM,
        distance_metric: str = SQUARED_EUCLIDEAN,
        seed: int | None = None,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: ec.RunConfig | None = None,
        feature_columns: Sequence[Any] | None = None,
        *,
        plugins: Any = None,
    ) -> None:
        options = KMeansOptions(
            num_clusters=num_clusters,
            initial_clusters=initial_clusters,
            distance_metric=distance_metric,
            seed=seed,
            use_mini_batch=use_mini_batch,
            mini_batch_steps_per_iteration=mini_batch_steps_per_iteration,
            kmeans_plus_plus_num_retries=kmeans_plus_plus_num_retries,
            relative_tolerance=relative_tolerance,
        )
        self._metric = distance_metric
        super().__init__(kmeans_model_fn(options, feature_columns), model_dir=model_dir, config=config, plugins=plugins)

    def predict_cluster_index(self, input_fn: Callable[..., Any]) -> Iterator[int]:
        """Yields the index of the nearest centre of each point."""
        for row in self.predict(input_fn, predict_keys=[CLUSTER_INDEX]):
            yield int(row[CLUSTER_INDEX])

    def score(self, input_fn: Callable[..., Any]) -> float:
        """Returns the sum of the distances of the points of one batch to their nearest centres."""
        return float(self.evaluate(input_fn, steps=1)[SCORE])

    def transform(self, input_fn: Callable[..., Any]) -> Iterator[np.ndarray]:
        """Yields the distances of each point to all centres, float32[num_clusters], not squared."""
        for row in self.predict(input_fn, predict_keys=[ALL_DISTANCES]):
            distances = np.asarray(row[ALL_DISTANCES])
            yield np.sqrt(distances) if self._metric == SQUARED_EUCLIDEAN else distances

    def cluster_centers(self) -> np.ndarray:
        """Returns the centres, float32[num_clusters, size]."""
        return self.get_variable_value(CLUSTERS)
