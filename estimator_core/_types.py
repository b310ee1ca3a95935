"""Names for what goes through every room; the only aliases of `Any` are here, each for what the user owns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import jax
    import numpy as np

#: A tree of arrays whose structure the user or the user's optimizer chooses: features, labels, predictions, slots.
#: Any tree that JAX knows; leaves are arrays of numpy or JAX, or stand for one (a traced value, a shape with a dtype).
PyTree: TypeAlias = Any

#: `params` as passed to the Estimator: a dict, an object, anything.
Params: TypeAlias = Any

#: Arrays by path or name: variables, gradients, outputs of a step.
Arrays: TypeAlias = "dict[str, jax.Array]"

#: Which rows of a batch are examples, 1 or 0 each; None where no row is padding.
Mask: TypeAlias = "jax.Array | np.ndarray | None"
