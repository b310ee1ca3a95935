"""The train state: a shallow pytree that is donated to every step, and its packing for dispatches.

A dispatch flattens and rebuilds every dict and tuple of a state, which takes the host a considerable part of a small
step. Every array that enters and leaves a compiled program costs a further one to three microseconds. A model with many
small variables (a hundred feature columns with two optimizer slots each) spends more time on this than on its
computation.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._types import Arrays, PyTree

#: Positions in the clock.
STEP, FIRST_BAD_STEP, SEED_LOW, SEED_HIGH = range(4)


class TrainState(NamedTuple):
    """Everything that a training step changes.

    `clock` is one uint32[4] leaf with four numbers, since every leaf costs about two microseconds per dispatch. They
    are the global step, the first step whose loss was not finite (0: none), and the low and high words of the seed.
    Keys depend on (seed, step), so nothing random is stored. Shardings and shapes of a state have the same form, hence
    the types of the leaves.

    Example:
        >>> state = TrainState(initial_clock(7), {}, {}, ())
        >>> int(state.clock[STEP])
        0
    """

    clock: Any
    variables: dict[str, Any]
    model_state: dict[str, Any]
    opt_state: PyTree

    @property
    def by_path(self) -> dict[str, Any]:
        """All variables, trainable or not."""
        return {**self.variables, **self.model_state}


def initial_clock(seed: int) -> np.ndarray:
    """Returns the clock before the first step, with a seed of up to 64 bits."""
    return np.array([0, 0, seed & 0xFFFFFFFF, seed >> 32], np.uint32)


def clock_seed(clock: jax.Array) -> int:
    """Returns the seed in a clock."""
    words = np.asarray(clock)
    return int(words[SEED_LOW]) | int(words[SEED_HIGH]) << 32


def flatten_opt_state(opt_state: PyTree) -> dict[str, Any]:
    """Returns the leaves of an optimizer state by path, so that a checkpoint can be read without the optimizer code."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(opt_state)
    return {_path_name(path): leaf for path, leaf in leaves}


def unflatten_opt_state(like: PyTree, leaves: Arrays) -> PyTree:
    """Rebuilds an optimizer state with the structure of `like` from the result of `flatten_opt_state`."""
    paths, treedef = jax.tree_util.tree_flatten_with_path(like)
    return jax.tree_util.tree_unflatten(treedef, [leaves[_path_name(path)] for path, _ in paths])


def _path_name(path: tuple[object, ...]) -> str:
    return "/".join(str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in path)


#: A leaf up to this size is cheaper to copy than to pass.
SMALL_BYTES = 4096
#: With fewer small leaves, packing is not faster, because a dispatch runs while the device computes the previous one.
FEWEST = 48
#: If leaves are larger on average than this, the step takes much longer than its dispatch.
LARGEST_MEAN_BYTES = 32 * 1024
#: The number of leaves in one array. XLA compiles a kernel for each combination of place, shape and use, so few places
#: need few kernels.
_GROUP = 8


class Packed(NamedTuple):
    """A train state in the form of `Packing.pack`, which a packed program accepts, donates and returns.

    Attributes:
        clock: see TrainState. It is separate because it is read between steps.
        groups: uint32[n] each, the concatenated bits of up to 8 small leaves. Empty if this is not faster.
        rest: the other leaves.
    """

    clock: jax.Array
    groups: tuple[jax.Array, ...]
    rest: tuple[jax.Array, ...]


class Packing:
    """Defines how the leaves of one state structure are carried.

    Args:
        state: the state, or its shapes and dtypes.
        together: whether small leaves share arrays. If not, the program computes the same bits as with the state
            itself.

    Attributes:
        shared: whether leaves share arrays.

    Example:
        >>> state = TrainState(np.zeros(4, np.uint32), {"a": jnp.ones(2), "b": jnp.zeros((500, 500))}, {}, ())
        >>> packing = Packing(state)
        >>> packed = packing.pack(state)
        >>> [group.shape for group in packed.groups], [leaf.shape for leaf in packed.rest]
        ([(2,)], [(500, 500)])
        >>> packing.unpack(packed).variables["a"].tolist()
        [1.0, 1.0]
    """

    def __init__(self, state: TrainState, *, together: bool = True) -> None:
        leaves, self._structure = jax.tree.flatten(state._replace(clock=None))
        self._shapes = [(leaf.shape, leaf.dtype) for leaf in leaves]
        small = [index for index, leaf in enumerate(leaves) if together and _is_small(leaf)]
        small.sort(key=lambda index: (self._shapes[index][0], str(self._shapes[index][1])))  # equal shapes together
        self._groups = [small[start : start + _GROUP] for start in range(0, len(small), _GROUP)]
        grouped = set(small)
        self._rest = [index for index in range(len(leaves)) if index not in grouped]
        self.shared = bool(small)
        self._pack_groups = jax.jit(lambda leaves: tuple(_joined(group) for group in leaves))
        self._unpack_groups = jax.jit(self._parts)

    def fits(self, state: TrainState) -> bool:
        """Returns whether a state has this structure, with these shapes and dtypes.

        An optimizer may change its own state.
        """
        leaves, structure = jax.tree.flatten(state._replace(clock=None))
        return structure == self._structure and [(leaf.shape, leaf.dtype) for leaf in leaves] == self._shapes

    def holds(self, carried: object) -> bool:
        """Returns whether a state is packed."""
        return isinstance(carried, Packed)

    def settled(self, carried: Packed) -> Packed:
        """Returns the argument for `unpack`."""
        return carried

    def pack(self, state: TrainState) -> Packed:
        """Packs a state, which must fit, into fewer arrays. Large leaves remain the same arrays."""
        leaves = jax.tree.leaves(state._replace(clock=None))
        groups: tuple[jax.Array, ...] = ()
        if self._groups:
            groups = self._pack_groups(tuple(tuple(leaves[index] for index in group) for group in self._groups))
        return Packed(state.clock, groups, tuple(leaves[index] for index in self._rest))

    def unpack(self, packed: Packed) -> TrainState:
        """Restores the state from its packed form."""
        leaves: list[jax.Array | None] = [None] * len(self._shapes)
        unpacked = self._unpack_groups(packed.groups) if self._groups else ()
        for group, parts in zip(self._groups, unpacked, strict=True):
            for index, part in zip(group, parts, strict=True):
                leaves[index] = part
        for index, leaf in zip(self._rest, packed.rest, strict=True):
            leaves[index] = leaf
        return jax.tree.unflatten(self._structure, leaves)._replace(clock=packed.clock)

    def _parts(self, groups: Sequence[jax.Array]) -> tuple[tuple[jax.Array, ...], ...]:
        return tuple(
            _split(joined, [self._shapes[index] for index in group])
            for joined, group in zip(groups, self._groups, strict=True)
        )


def packing_for(state: TrainState, tables: Collection[str]) -> Packing:
    """Returns how this state is carried on one device, with small leaves in shared arrays if this is faster.

    It depends only on the shapes, so that a resumed run computes the same bits.

    Args:
        state: the state of training.
        tables: the variables of which a step touches only a few rows.
    """
    # Tables, and their slots in the optimizer, do not count, because a step touches only some of their rows.
    shapes = {state.variables[name].shape for name in tables}
    touched = [leaf for leaf in jax.tree.leaves(state._replace(clock=None)) if leaf.shape not in shapes]
    small = sum(_is_small(leaf) for leaf in touched)
    many = small >= FEWEST and sum(_bytes(leaf) for leaf in touched) <= LARGEST_MEAN_BYTES * len(touched)
    return Packing(state, together=many)


def _bytes(leaf: jax.Array) -> int:
    return math.prod(leaf.shape) * np.dtype(leaf.dtype).itemsize


def _is_small(leaf: jax.Array) -> bool:
    # Four bytes per element, so that all kinds fit into one array. Keys of jax.random have their own dtype.
    of_four_bytes = isinstance(leaf.dtype, np.dtype) and leaf.dtype.itemsize == 4 and leaf.dtype.kind in "fiu"
    return of_four_bytes and 0 < _bytes(leaf) <= SMALL_BYTES


def _joined(leaves: Sequence[jax.Array]) -> jax.Array:
    return jnp.concatenate([jax.lax.bitcast_convert_type(leaf, jnp.uint32).reshape(-1) for leaf in leaves])


def _split(joined: jax.Array, shapes: Sequence[tuple[tuple[int, ...], np.dtype]]) -> tuple[jax.Array, ...]:
    parts: list[jax.Array] = []
    start = 0
    for shape, dtype in shapes:
        size = math.prod(shape)
        parts.append(jax.lax.bitcast_convert_type(joined[start : start + size], dtype).reshape(shape))
        start += size
    return tuple(parts)
