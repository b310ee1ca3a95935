"""Type aliases that all rooms use. The only aliases of `Any` are here, each for values that the user owns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import jax
    import numpy as np

#: A tree of arrays whose structure the user or the user's optimizer chooses: features, labels, predictions, slots. It
#: is any tree that JAX knows. Its leaves are arrays of numpy or JAX, or represent one (a traced value, a shape with a
#: dtype).
PyTree: TypeAlias = Any

#: The `params` of the Estimator: a dict or any other object.
Params: TypeAlias = Any

#: Arrays by path or name: variables, gradients, outputs of a step.
Arrays: TypeAlias = "dict[str, jax.Array]"

#: Marks the rows of a batch that are examples with 1, and others with 0. None: all rows are examples.
Mask: TypeAlias = "jax.Array | np.ndarray | None"
