"""The optimizers of canned models: selected by name, with the rates of tf.estimator, or any optax transformation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import optax

from estimator_core.errors import ArgumentError
from estimator_heads import adagrad, adam, ftrl

#: Which rows of a table the gradients and slots change: the rows of the batch (True), all rows (False), or the rows
#: that tf.estimator changes ("as_tf"): those of the batch, and row 0 for an example without a category.
RowSparse: TypeAlias = bool | Literal["as_tf"]

_EPSILON = 1e-7


def _rmsprop(rate: optax.ScalarOrSchedule = 0.001) -> optax.GradientTransformation:
    return optax.rmsprop(rate, decay=0.9, eps=_EPSILON, eps_in_sqrt=False)


def _sgd(rate: optax.ScalarOrSchedule = 0.01) -> optax.GradientTransformation:
    return optax.sgd(rate)


#: For each name: the function that makes the optimizer, and whether the one of tf.estimator also changes only the rows
#: of the batch.
_NAMED: dict[str, tuple[Callable[..., optax.GradientTransformation], bool]] = {
    "Adagrad": (adagrad, True),
    "Adam": (adam, False),
    "Ftrl": (ftrl, True),
    "RMSProp": (_rmsprop, False),
    "SGD": (_sgd, True),
}


@dataclass(frozen=True)
class ChosenOptimizer:
    """A transformation, and the rows of tables that it changes."""

    transformation: optax.GradientTransformation
    row_sparse: RowSparse


def choose_optimizer(
    optimizer: Any, learning_rate: optax.ScalarOrSchedule | None, row_sparse: RowSparse | None = None
) -> ChosenOptimizer:
    """Returns the optimizer that an `optimizer` argument selects.

    Args:
        optimizer: "Adagrad", "Adam", "Ftrl", "RMSProp" or "SGD", an optax transformation, what this function returned,
            or a function without arguments that returns one of these.
        learning_rate: the rate, or an optax schedule, of an optimizer that is selected by name; None: 0.01 for SGD,
            0.001 for the others.
        row_sparse: whether gradients and slots of tables change only the rows of the batch. It has no effect if
            `optimizer` is a result of this function. None: True, except for "Adam" and "RMSProp", whose moments move
            every row in tf.estimator. "as_tf": the rows of the batch, and row 0 if an example has no category, as in
            tf.estimator. The gradient of that row is zero, so it changes only if the optimizer moves without a
            gradient, as with momentum.

    Raises:
        ArgumentError: the optimizer or row_sparse has another value.

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
    """Scales the gradient of each variable down to a maximum norm, as `clipnorm` of Keras does.

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
