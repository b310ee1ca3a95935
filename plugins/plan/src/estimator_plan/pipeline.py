"""Layers in stages on different devices: each stage computes one part of the batch while others compute other parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from estimator_core.backends import BATCH_AXES, STAGES
from estimator_core.errors import ArgumentError


def pipelined(
    layer: Callable[[Any, Any], Any], weights: Any, x: Any, *, microbatches: int = 8, axis: str = STAGES
) -> Any:
    """Returns the result of all layers, one after the other: `for w in weights: x = layer(x, w)`, as a `lax.scan`.

    If the mesh has the axis, each of its parts is a stage and holds the same number of layers. The batch is cut into
    micro-batches. In each round, all stages compute, and send their activations to the next one. There are
    `microbatches + stages - 1` rounds, so all but the first and the last are full. Without the axis, as in an export,
    the layers are a plain scan. The numbers differ only by the order of sums.

    The layer must treat each example by itself, without statistics of the batch. Data that belongs to examples, such as
    a mask, passes through the layers as a part of `x`. Gradients of weights are added over the rounds in float32.

    Args:
        layer: a function of activations and the weights of one layer that returns activations of the same structure,
            shapes and dtypes. With `jax.checkpoint` around it, only its inputs are kept for the backward pass.
        weights: the arrays of any dtype, or containers of them. The first axis of each counts the layers. A partition
            rule such as `("layers/.*", ("stage",))` places each layer on the devices that compute it.
        x: the activations, or containers of them. The first axis of each counts the examples.
        microbatches: the number of parts of the batch. If it does not divide the examples of a device, the largest
            common divisor is used.
        axis: the axis of the mesh.

    Returns:
        Activations like `x`.

    Raises:
        ArgumentError: the layers cannot be shared equally by the stages, arrays have different first axes, or
            `microbatches` is less than 1.

    Example:
        >>> kernels = jnp.stack([jnp.eye(2), 2 * jnp.eye(2)])
        >>> pipelined(lambda x, kernel: x @ kernel, kernels, jnp.ones((4, 2)))[0]
        Array([2., 2.], dtype=float32)

    Source: Huang et al., GPipe (2018); the buffer that shifts: Xu et al., GSPMD (2021).
    """
    if microbatches < 1:
        raise ArgumentError(f"pipelined: microbatches should be >= 1, given: {microbatches}.")
    layers, rows = _first_axis(weights, "weights"), _first_axis(x, "x")
    sizes = dict(jax.sharding.get_abstract_mesh().shape)
    stages = sizes.get(axis, 1)
    if layers % stages:
        raise ArgumentError(
            f"pipelined: {layers} layers cannot be shared equally by the {stages} devices along the axis {axis!r} of "
            "the mesh. Use a number of stages that divides the layers."
        )

    def in_turn(x: Any, weights: Any) -> Any:
        return jax.lax.scan(lambda x, own: (layer(x, own), None), x, weights)[0]

    if stages == 1:
        return in_turn(x, weights)
    batch = tuple(name for name in BATCH_AXES if sizes.get(name, 1) > 1)
    shared = math.prod(sizes[name] for name in batch)
    parts = math.gcd(rows // shared if rows % shared == 0 else rows, microbatches)
    inside = tuple(name for name, size in sizes.items() if size > 1 and name not in (axis, *batch))

    def constrained(array: jax.Array, *before: str | None, split: bool) -> jax.Array:
        """Constrains an array with examples after the axes `before`: split by example, and over `inside` if `split`."""
        place = len(before)
        entries: list[Any] = [*before, batch if batch and array.shape[place] % shared == 0 else None]
        entries += [None] * (array.ndim - len(entries))
        each = math.prod(sizes[name] for name in inside)
        free = [at for at in range(place + 1, array.ndim) if array.shape[at] % each == 0]
        if split and inside and free:
            entries[max(free, key=lambda at: array.shape[at])] = inside
        return jax.lax.with_sharding_constraint(array, PartitionSpec(*entries))

    def of_all(tree: Any, *before: str | None, split: bool = True) -> Any:
        return jax.tree.map(lambda array: constrained(array, *before, split=split), tree)

    def stage(x: Any, own: Any) -> Any:
        # Activations are whole along `inside` within a stage, however they are sent, because the layer decides the
        # split.
        return of_all(in_turn(of_all(x, split=False), own), split=False)

    def by_stage(array: jax.Array) -> jax.Array:
        array = array.reshape(stages, layers // stages, *array.shape[1:])
        any_way = [PartitionSpec.UNCONSTRAINED] * (array.ndim - 1)
        return jax.lax.with_sharding_constraint(array, PartitionSpec(axis, *any_way))

    # A micro-batch takes every n-th example, so that each device keeps its own.
    fed = of_all(jax.tree.map(lambda a: a.reshape(-1, parts, *a.shape[1:]).swapaxes(0, 1), x), None)
    # Stages without a micro-batch compute with another one, because zeros may have no finite gradient.
    last = jax.tree.map(lambda a: jnp.broadcast_to(a[-1:], (stages - 1, *a.shape[1:])), fed)
    fed = of_all(jax.tree.map(lambda *pieces: jnp.concatenate(pieces), fed, last), None)
    held = of_all(jax.tree.map(lambda a: jnp.broadcast_to(a[:1], (stages, *a.shape[1:])), fed), axis)
    own = jax.tree.map(by_stage, weights)
    wide = jax.tree.map(_widened, own)
    every_stage = jax.vmap(stage, spmd_axis_name=axis)

    def one_round(held: Any, new: Any) -> tuple[Any, Any]:
        def shifted(array: jax.Array, first: jax.Array) -> jax.Array:
            is_first = jnp.arange(stages).reshape(-1, *[1] * first.ndim) == 0
            return jnp.where(is_first, first[None], jnp.roll(array, 1, axis=0))

        held = of_all(jax.tree.map(shifted, held, new), axis)
        held = of_all(every_stage(held, jax.tree.map(lambda a, like: a.astype(like.dtype), wide, own)), axis)
        return held, held

    results = jax.lax.scan(one_round, held, fed)[1]
    ended = of_all(jax.tree.map(lambda a: a[stages - 1 :, -1], results), None)
    return jax.tree.map(lambda a: a.swapaxes(0, 1).reshape(rows, *a.shape[2:]), ended)


def _widened(array: jax.Array) -> jax.Array:
    """Converts an array to float32 if it is narrower, so that the gradients of the rounds are added in float32."""
    narrow = jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize < 4
    return array.astype(jnp.float32) if narrow else array


def _first_axis(tree: Any, name: str) -> int:
    shapes = [jnp.shape(leaf) for leaf in jax.tree.leaves(tree)]
    firsts = {shape[0] if shape else None for shape in shapes}
    if len(firsts) != 1 or None in firsts:
        raise ArgumentError(
            f"pipelined: all arrays of {name} should have the same first axis, given shapes: {sorted(set(shapes))}."
        )
    return next(size for size in firsts if size is not None)
