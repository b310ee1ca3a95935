"""Computes totals of several metrics in few arrays.

Each total of a batch takes several kernels, and each array of a program takes the host a microsecond or more. For a
small model that is more than the model itself. So the terms of totals are stacked, summed together and merged together.
The arithmetic of a total does not change, so its bits are those of a separate total.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from estimator_core._metrics.base import TotalsMetric
from estimator_core._metrics.merging import merge_metrics
from estimator_core._metrics.term_recording import Noted
from estimator_core._metrics.totals import exact_sum, merge_totals

if TYPE_CHECKING:
    from jax import Array

    from estimator_core._metrics.base import Metric

_KINDS = (jnp.float32, jnp.uint32)


class Together(NamedTuple):
    """The places of the arrays of some metrics.

    Attributes:
        structure: the tree structure of the metrics.
        joint: for each joint array [2, n], the places of its totals among the arrays of the metrics.
        alone: the places of all other arrays.
        names: the names of the metrics that have arrays in `alone`.

    Example:
        >>> import numpy as np
        >>> from estimator_core._metrics.mean import mean
        >>> metrics = {name: mean(np.float32(value)) for name, value in (("a", 3), ("b", 5))}
        >>> place = Together.of(metrics)
        >>> [array.shape for array in place.joined(metrics, [])], place.apart(place.joined(metrics, []))["b"].compute()
        ([(2, 2), (2, 2)], 5.0)
    """

    structure: Any
    joint: tuple[tuple[int, ...], ...]
    alone: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, metrics: Mapping[str, Metric], *, apart: bool = False) -> Together:
        """Returns the places for metrics of these types, shapes and dtypes.

        Args:
            metrics: the metrics, by name.
            apart: whether every array stays separate.
        """
        by_kind: dict[Any, list[int]] = {kind: [] for kind in _KINDS}
        owners: list[str] = []
        for name in sorted(metrics):
            metric: Any = metrics[name]
            # A class with its own `merge` may do more than add totals.
            totals = not apart and getattr(type(metric), "merge", None) is TotalsMetric.merge
            for leaf in jax.tree.leaves(metric):
                kind = next((kind for kind in _KINDS if totals and leaf.shape == (2,) and leaf.dtype == kind), None)
                if kind is not None:
                    by_kind[kind].append(len(owners))
                owners.append(name)
        joint = tuple(tuple(places) for places in by_kind.values() if len(places) > 1)
        alone = tuple(place for place in range(len(owners)) if not any(place in places for places in joint))
        return cls(jax.tree.structure(dict(metrics)), joint, alone, tuple(sorted({owners[place] for place in alone})))

    def joined(self, metrics: Mapping[str, Metric], noted: Sequence[Noted]) -> tuple[Array, ...]:
        """Returns the arrays of metrics, with the joint ones first.

        Args:
            metrics: the metrics of one batch.
            noted: the totals among their arrays whose terms are known. These are summed together.
        """
        leaves = jax.tree.leaves(dict(metrics))
        terms = {id(total.result): total.terms for total in noted}
        joint = [_joint([leaves[place] for place in places], terms) for places in self.joint]
        return (*joint, *(leaves[place] for place in self.alone))

    def merged(self, old: Sequence[Array], new: Sequence[Array]) -> tuple[Array, ...]:
        """Merges the arrays of both."""
        count = len(self.joint)
        joint = [merge_totals(*pair) for pair in zip(old[:count], new[:count], strict=True)]
        if not self.alone:
            return tuple(joint)
        parts = [{name: self.apart(arrays)[name] for name in self.names} for arrays in (old, new)]
        of_names = jax.tree.leaves(merge_metrics(*parts))
        owned = [place for place, name in enumerate(self._owners()) if name in self.names]
        return (*joint, *(of_names[owned.index(place)] for place in self.alone))

    def apart(self, arrays: Sequence[Any]) -> dict[str, Metric]:
        """Returns the metrics of these arrays, which may be of jax or of numpy."""
        leaves: list[Any] = [None] * self.structure.num_leaves
        for places, array in zip(self.joint, arrays, strict=False):
            for column, place in enumerate(places):
                leaves[place] = array[:, column]
        for place, array in zip(self.alone, arrays[len(self.joint) :], strict=True):
            leaves[place] = array
        return jax.tree.unflatten(self.structure, leaves)

    def _owners(self) -> list[str]:
        """Returns the name of the metric of each place."""
        metrics = jax.tree.unflatten(self.structure, range(self.structure.num_leaves))
        return [name for name in sorted(metrics) for _ in jax.tree.leaves(metrics[name])]


def _joint(totals: Sequence[Array], terms: Mapping[int, Array]) -> Array:
    """Returns totals as columns, [2, n]. Totals with known terms of the same shape are summed together."""
    alike: dict[Any, list[int]] = defaultdict(list)
    for column, total in enumerate(totals):
        if id(total) in terms:
            alike[terms[id(total)].shape].append(column)
    columns = [total[:, None] for total in totals]
    for group in alike.values():
        if len(group) > 1:
            sums = _sums([terms[id(totals[column])] for column in group], totals[0].dtype)
            for place, column in enumerate(group):
                columns[column] = sums[:, place, None]
    return jnp.concatenate(columns, axis=1)


def _sums(terms: Sequence[Array], kind: Any) -> Array:
    """Returns the totals of arrays of one shape as columns [2, n]. See `total`."""
    axes = tuple(range(1, terms[0].ndim + 1))
    stacked = jnp.stack([one.astype(kind) for one in terms])
    if kind == jnp.uint32:
        low = jnp.sum(stacked, axis=axes, dtype=kind)
        return jnp.stack([low, jnp.zeros_like(low)])
    size = math.prod(terms[0].shape)
    return exact_sum(stacked, lambda pieces: jnp.sum(pieces, axis=axes), terms_per_sum=size, axes=axes)
