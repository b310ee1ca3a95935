"""Names for the axes of arrays, and what splits them: activations follow the mesh without naming its axes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Mapping, Sequence
from contextvars import ContextVar

import jax
from jax.sharding import PartitionSpec
from jaxtyping import Array, Shaped

from estimator_core._backends.partition import BATCH_AXES, AxisEntry, LogicalAxisRules, mesh_axes
from estimator_core._types import PyTree
from estimator_core.errors import ArgumentError

_DEFAULT: LogicalAxisRules = {"batch": BATCH_AXES}
_RULES: ContextVar[LogicalAxisRules] = ContextVar("logical_axis_rules", default=_DEFAULT)


def with_logical_constraint(array: Shaped[Array, ...], axes: Sequence[str | None]) -> Shaped[Array, ...]:
    """The array, split over the mesh as the names of its axes say.

    Inside model_fn, one call where a layer begins keeps activations split by example. Without it, the compiler may
    split them like the variables that they meet, and send many times as much. Without a mesh, and for an axis that does
    not divide, nothing changes.

    Args:
        array: of any shape and dtype.
        axes: one name for each axis; None: not split. "batch" is split like the batch, an axis of the mesh over itself,
            and other names as `RunConfig(logical_axis_rules=...)` says.

    Raises:
        ArgumentError: there are more or fewer names than axes.

    Example:
        >>> import jax.numpy as jnp
        >>> with_logical_constraint(jnp.ones((2, 3)), ("batch", "embed")).shape
        (2, 3)

    Source: `flax.linen.with_logical_constraint`.
    """
    if len(axes) != array.ndim:
        raise ArgumentError(
            f"with_logical_constraint: an array of shape {array.shape} needs {array.ndim} names of axes, given: "
            f"{tuple(axes)!r}."
        )
    sizes = dict(jax.sharding.get_abstract_mesh().shape)
    entries = split_axes(array.shape, axes, sizes, _RULES.get())
    return jax.lax.with_sharding_constraint(array, PartitionSpec(*entries)) if any(entries) else array


def gathered(tree: PyTree) -> PyTree:
    """Variables, whole on every device where they are used: what fully sharded training sends, made explicit.

    Called on the weights of one layer inside model_fn, for example in the body of a scan over layers. Without it, the
    compiler may send activations or parts of products instead, which is more for wide layers. Where the mesh has axes
    besides those of the batch, such as "model", nothing changes.

    Args:
        tree: arrays, or containers of them.

    Example:
        >>> import jax.numpy as jnp
        >>> gathered({"kernel": jnp.ones((2, 3))})["kernel"].shape
        (2, 3)

    Source: Rajbhandari et al., ZeRO (2019), stage 3.
    """
    sizes = dict(jax.sharding.get_abstract_mesh().shape)
    split = [axis for axis, size in sizes.items() if size > 1]
    if not split or not set(split) <= set(BATCH_AXES):
        return tree
    return jax.tree.map(lambda array: jax.lax.with_sharding_constraint(array, PartitionSpec()), tree)


def split_axes(
    shape: Sequence[int], axes: Sequence[str | None], sizes: Mapping[str, int], rules: LogicalAxisRules
) -> list[AxisEntry]:
    """For each axis of an array, the mesh axes that split it; each mesh axis is used once.

    Example:
        >>> split_axes((8, 6), ("batch", "embed"), {"data": 2, "model": 3}, {"batch": ("data",), "embed": "model"})
        [('data',), ('model',)]
    """
    free = {axis for axis, size in sizes.items() if size > 1}
    entries: list[AxisEntry] = []
    for size, name in zip(shape, axes, strict=True):
        found = tuple(axis for axis in mesh_axes(name, rules) if axis in free)
        if not found or size % math.prod(sizes[axis] for axis in found):
            found = ()
        free -= set(found)
        entries.append(found or None)
    return entries


@contextlib.contextmanager
def logical_axis_rules(rules: LogicalAxisRules) -> Generator[None]:
    """These rules hold for what is traced inside, besides that of "batch"."""
    token = _RULES.set({**_DEFAULT, **rules})
    try:
        yield
    finally:
        _RULES.reset(token)
