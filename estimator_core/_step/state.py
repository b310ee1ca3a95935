"""The train state: a shallow plain pytree that is donated to every step."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
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


def initial_clock(seed: int, step: int = 0) -> np.ndarray:
    """The clock of a run that starts at `step` with a seed of up to 64 bits."""
    return np.array([step, 0, seed & 0xFFFFFFFF, seed >> 32], np.uint32)


def clock_seed(clock: jax.Array) -> int:
    """The seed in a clock."""
    words = np.asarray(clock)
    return int(words[SEED_LOW]) | int(words[SEED_HIGH]) << 32


def flatten_opt_state(opt_state: PyTree) -> dict[str, Any]:
    """The leaves of an optimizer's state by path, so that a checkpoint needs no optimizer code to be read."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(opt_state)
    return {_path_name(path): leaf for path, leaf in leaves}


def unflatten_opt_state(like: PyTree, leaves: Arrays) -> PyTree:
    """The inverse of `flatten_opt_state`, for a state of the same structure as `like`."""
    paths, treedef = jax.tree_util.tree_flatten_with_path(like)
    return jax.tree_util.tree_unflatten(treedef, [leaves[_path_name(path)] for path, _ in paths])


def _path_name(path: tuple[object, ...]) -> str:
    return "/".join(str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in path)
