"""Which part of the input belongs to this process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimator_core.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class InputContext:
    """Tells an input_fn which shard is its own, as tf.distribute.InputContext does.

    Args:
        num_input_pipelines: how many processes read the input.
        input_pipeline_id: the index of this process among them, from 0.
        num_replicas_in_sync: devices that share a global batch.
        parts: which of `num_replicas_in_sync` equal parts of a global batch this process's devices hold, in ascending
            order; empty: the part `input_pipeline_id` of `num_input_pipelines`.

    Raises:
        ArgumentError: a count below 1, an id outside the pipelines, or parts outside the replicas.

    Example:
        >>> context = InputContext(num_input_pipelines=2, input_pipeline_id=1, num_replicas_in_sync=4)
        >>> context.get_per_replica_batch_size(64)
        16
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1
    parts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.num_input_pipelines < 1 or self.num_replicas_in_sync < 1:
            raise ArgumentError(f"An InputContext needs counts of at least 1, given: {self}.")
        if not 0 <= self.input_pipeline_id < self.num_input_pipelines:
            raise ArgumentError(
                f"input_pipeline_id must be from 0 to {self.num_input_pipelines - 1} (num_input_pipelines - 1), "
                f"given: {self.input_pipeline_id}."
            )
        if not set(self.parts) <= set(range(self.num_replicas_in_sync)) or list(self.parts) != sorted(set(self.parts)):
            raise ArgumentError(
                f"parts must be ascending numbers from 0 to {self.num_replicas_in_sync - 1} (num_replicas_in_sync - "
                f"1), given: {self.parts}."
            )

    def rows(self, total: int) -> np.ndarray:
        """The rows of a global batch that this process supplies: int64[rows], ascending.

        If the batch does not divide by its parts, as may be the case for the last batch, every process has all rows.

        Args:
            total: rows of the global batch.

        Example:
            >>> context = InputContext(num_input_pipelines=2, input_pipeline_id=1)
            >>> context.rows(6).tolist(), context.rows(5).tolist()
            ([3, 4, 5], [0, 1, 2, 3, 4])
        """
        parts = self.parts or (self.input_pipeline_id,)
        count = self.num_replicas_in_sync if self.parts else self.num_input_pipelines
        rows = np.arange(total)
        return rows if total % count else rows.reshape(count, -1)[list(parts)].reshape(-1)

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The part of a global batch that one replica gets.

        Raises:
            ArgumentError: the global batch does not divide by the replicas.
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise ArgumentError(
                f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` "
                f"{self.num_replicas_in_sync}. Choose a multiple of it."
            )
        return global_batch_size // self.num_replicas_in_sync
