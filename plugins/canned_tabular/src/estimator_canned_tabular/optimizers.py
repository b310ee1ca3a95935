"""The optimizers of canned models: by name, with the rates of the original, or any optax transformation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import optax

from estimator_core.errors import ArgumentError
from estimator_heads import adagrad, adam, ftrl

#: Which rows of a table gradients and slots touch: those of the batch (True), all (False), or those of tf.estimator:
#: of the batch, and row 0 for an example without a category.
RowSparse: TypeAlias = bool | Literal["as_tf"]

_EPSILON = 1e-7


def _rmsprop(rate: float = 0.001) -> optax.GradientTransformation:
    return optax.rmsprop(rate, decay=0.9, eps=_EPSILON, eps_in_sqrt=False)


def _sgd(rate: float = 0.01) -> optax.GradientTransformation:
    return optax.sgd(rate)


#: By name: how it is made, and whether the original, too, leaves rows alone that a batch does not touch.
_NAMED: dict[str, tuple[Callable[..., optax.GradientTransformation], bool]] = {
    "Adagrad": (adagrad, True),
    "Adam": (adam, False),
    "Ftrl": (ftrl, True),
    "RMSProp": (_rmsprop, False),
    "SGD": (_sgd, True),
}


@dataclass(frozen=True)
class ChosenOptimizer:
    """A transformation, and whether tables are updated row by row with it."""

    transformation: optax.GradientTransformation
    row_sparse: RowSparse


def choose_optimizer(
    optimizer: Any, learning_rate: float | None, row_sparse: RowSparse | None = None
) -> ChosenOptimizer:
    """What an `optimizer` argument stands for.

    Args:
        optimizer: "Adagrad", "Adam", "Ftrl", "RMSProp" or "SGD", an optax transformation, what this function returned,
            or a function without arguments that returns one of these.
        learning_rate: of an optimizer that is given by name; None: 0.01 for SGD, 0.001 for the others.
        row_sparse: for what has not been chosen yet. Whether gradients and slots of tables touch only the rows of the
            batch; None: unless it is "Adam" or "RMSProp", whose moments moved every row in the original. "as_tf": also
            row 0 where an example has no category, as in tf.estimator. Its gradient is zero, so it changes only under
            an optimizer that moves without a gradient, as momentum does.

    Raises:
        ArgumentError: something else.

    Example:
        >>> choose_optimizer("Ftrl", 0.2).row_sparse
        True

    Source: `tensorflow_estimator.python.estimator.canned.optimizers.get_optimizer_instance_v2`.
    """
    if row_sparse not in (None, True, False, "as_tf"):
        raise ArgumentError(f'row_sparse should be True, False, "as_tf" or None, given: {row_sparse!r}.')
    if callable(optimizer) and not isinstance(optimizer, optax.GradientTransformation):
        optimizer = optimizer()
    if isinstance(optimizer, ChosenOptimizer):
        return optimizer
    if isinstance(optimizer, str):
        if optimizer not in _NAMED:
            raise ArgumentError(
                f"Unsupported optimizer name: {optimizer}. Supported names are: {tuple(sorted(_NAMED))}"
            )
        make, sparse = _NAMED[optimizer]
        made = make() if learning_rate is None else make(learning_rate)
        return ChosenOptimizer(made, sparse if row_sparse is None else row_sparse)
    if not isinstance(optimizer, optax.GradientTransformation):
        raise ArgumentError(
            f"The given object is not an Optimizer instance. Given: {optimizer!r}. Give an optax transformation, such "
            "as optax.adam(1e-3), or a name."
        )
    return ChosenOptimizer(optimizer, True if row_sparse is None else row_sparse)


def clip_each_by_norm(norm: float) -> optax.GradientTransformation:
    """Scales the gradient of each variable down to a norm, like `clipnorm` of Keras.

    Example:
        >>> clip = clip_each_by_norm(5.0)
        >>> clipped, _ = clip.update({"a": jnp.array([6.0, 8.0])}, clip.init({}))
        >>> clipped["a"].tolist()
        [3.0, 4.0]
    """

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        def leaf(gradient: Any) -> Any:
            size = jnp.sqrt(jnp.sum(gradient**2))
            return jnp.where(size > norm, gradient * (norm / jnp.where(size > 0, size, 1.0)), gradient)

        return jax.tree.map(leaf, updates), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)
