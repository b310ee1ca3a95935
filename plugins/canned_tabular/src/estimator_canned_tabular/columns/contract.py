"""The contracts of feature columns, which layers and the host transform use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np


class HostIds(NamedTuple):
    """The categories of a batch, as the host passes them to the device.

    Attributes:
        ids: int64[batch, values]; -1 for a missing value.
        weights: float32[batch, values]. None: all weights are 1.
        lengths: int64[batch], the number of steps of each sequence, including unknown values.
    """

    ids: np.ndarray
    weights: np.ndarray | None
    lengths: np.ndarray


@runtime_checkable
class FeatureColumn(Protocol):
    """A feature column of any type. Columns are compared by value."""

    @property
    def name(self) -> str:
        """The name of the column in variables and outputs."""
        ...

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The features that it reads from a tf.Example."""
        ...


@runtime_checkable
class DenseColumn(FeatureColumn, Protocol):
    """A column of numbers, float32[batch, width]."""

    @property
    def width(self) -> int:
        """The number of values per example."""
        ...


@runtime_checkable
class CategoricalColumn(FeatureColumn, Protocol):
    """A column of ids in [0, num_buckets), with any number of ids per example."""

    @property
    def num_buckets(self) -> int:
        """The number of ids."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the features that `host_ids` reads."""
        ...

    def host_ids(self, batch: Mapping[str, np.ndarray]) -> HostIds:
        """Computes the ids of a batch of features, as the input yields them.

        Raises:
            FeatureColumnError: a feature is missing, or has values that the column cannot read.
        """
        ...
