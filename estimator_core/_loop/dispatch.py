"""What one call of a device program runs on: one batch as it is, or several of one shape stacked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jax.tree_util import tree_flatten, tree_structure, tree_unflatten

from estimator_core._inputs import Batch
from estimator_core._types import Mask, PyTree

#: `(state, features, labels, weights) -> (state, outputs)`
Program = Callable[[Any, Any, Any, Any], tuple[Any, dict[str, Any]]]
Stacking = Callable[[Sequence[Any]], Any]


class Dispatch(NamedTuple):
    """Batches for one call: one batch as it is, or several of one shape stacked along a new leading axis."""

    features: PyTree
    labels: PyTree
    weights: Mask
    steps: int
    last: Batch


def single(batch: Batch) -> Dispatch:
    """One batch as a dispatch."""
    return Dispatch(batch.features, batch.labels, batch.weights, 1, batch)


def stacked(batches: Sequence[Batch], stack_arrays: Stacking) -> Dispatch | None:
    """Batches as one dispatch; None where they are not of one shape."""
    trees = [(batch.features, batch.labels, batch.weights) for batch in batches]
    leaves, structure = tree_flatten(trees)  # one call for all batches: a call for each takes three times as long
    first, of_one = tree_flatten(trees[0])
    shapes = [leaf.shape for leaf in leaves]  # an input's dtypes do not change
    if structure != tree_structure([trees[0]] * len(trees)) or shapes != shapes[: len(first)] * len(trees):
        return None
    columns = [stack_arrays(leaves[place :: len(first)]) for place in range(len(first))]
    features, labels, weights = tree_unflatten(of_one, columns)
    return Dispatch(features, labels, weights, len(batches), batches[-1])


def shapes_of(batch: Batch) -> Any:
    """What batches must have in common to be stacked; can be a key."""
    leaves, structure = tree_flatten((batch.features, batch.labels, batch.weights))
    return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)
