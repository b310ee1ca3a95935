"""A hook that refuses a first batch with too few points for the first clusters."""

from __future__ import annotations

import numpy as np

import estimator_core as ec
from estimator_core.errors import ArgumentError


class EnoughPoints(ec.Hook):
    """Refuses a first batch with fewer points than clusters, not counting those that fill it up.

    A run whose clusters are chosen accepts any batch, such as the short last one of an epoch. Only the run knows both.

    Args:
        num_clusters: the number of clusters.
        chosen: the path of the variable that records whether the clusters are chosen.

    Raises:
        ArgumentError: the first batch has too few points; raised in the run.

    Example:
        >>> EnoughPoints(3, "clusters_chosen").next_step(0) is None
        True
    """

    def __init__(self, num_clusters: int, chosen: str) -> None:
        self._num_clusters, self._chosen = num_clusters, chosen

    def after_create(self, run: ec.Run) -> None:
        """Counts the points of the first batch."""
        if run.batch_size < self._num_clusters and not np.asarray(run.state.model_state[self._chosen]):
            raise ArgumentError(
                f"The first batch has {run.batch_size} points, without those that fill it up: fewer than "
                f"num_clusters={self._num_clusters}. Give larger batches, or initial_clusters as an array and another "
                "model_dir."
            )

    def next_step(self, step: int) -> None:
        """Returns None: it needs only the first batch."""
