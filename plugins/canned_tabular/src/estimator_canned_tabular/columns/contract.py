"""What a feature column is: the contracts that layers and the host transform rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np


class HostIds(NamedTuple):
    """Categories of a batch as they leave the host.

    Attributes:
        ids: int64[batch, values]; -1 where there is no value.
        weights: float32[batch, values], or None: all 1.
        lengths: int64[batch], how many steps each sequence has, unknown values among them.
    """

    ids: np.ndarray
    weights: np.ndarray | None
    lengths: np.ndarray


@runtime_checkable
class FeatureColumn(Protocol):
    """Any column; columns are compared by value."""

    @property
    def name(self) -> str:
        """What variables and outputs of the column are called."""
        ...

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The features of a tf.Example it reads."""
        ...


@runtime_checkable
class DenseColumn(FeatureColumn, Protocol):
    """A column of numbers, float32[batch, width]."""

    @property
    def width(self) -> int:
        """Numbers of one example."""
        ...


@runtime_checkable
class CategoricalColumn(FeatureColumn, Protocol):
    """A column of ids in [0, num_buckets), any number of them an example."""

    @property
    def num_buckets(self) -> int:
        """How many ids there are."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the features that `host_ids` reads."""
        ...

    def host_ids(self, batch: Mapping[str, np.ndarray]) -> HostIds:
        """The ids of a batch of features as the input yields them.

        Raises:
            FeatureColumnError: a feature is missing, or has values the column cannot read.
        """
        ...
