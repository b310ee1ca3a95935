"""The `train_op` that a head returns, and the summaries that it writes in training."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import optax

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.model import in_model_fn


def make_train_op(
    loss: jax.Array,
    *,
    optimizer: Any,
    trainable_variables: Any,
    train_op_fn: Callable[[jax.Array], Any] | None,
    update_ops: Any,
) -> Any:
    """Returns the `train_op` of an EstimatorSpec.

    Args:
        loss: the regularized loss.
        optimizer: an optax transformation, or None.
        trainable_variables: the names of the variables to train. None: all variables.
        train_op_fn: returns the train_op for the loss. Set exactly one of `train_op_fn` and `optimizer`.
        update_ops: functions without arguments that are called now. They may call `ec.set_variable`. Modules update
            their state themselves.

    Raises:
        ArgumentError: not exactly one of optimizer and train_op_fn is set, or an argument has the wrong type.
    """
    if optimizer is not None and train_op_fn is not None:
        raise ArgumentError("train_op_fn and optimizer cannot both be set.")
    for name, given in (("update_ops", update_ops), ("trainable_variables", trainable_variables)):
        if given is not None and not isinstance(given, (list, tuple)):
            raise ArgumentError(f"{name} should be a list or a tuple. Given type: {type(given)}.")
    for update in update_ops or ():
        update()
    if train_op_fn is not None:
        return train_op_fn(loss)
    if optimizer is None:
        raise ArgumentError("train_op_fn and optimizer cannot both be None.")
    if not isinstance(optimizer, optax.GradientTransformation):
        raise ArgumentError(
            "The given optimizer is not an optax.GradientTransformation instance. "
            f"Received optimizer of type {type(optimizer)}. For example optax.adam(1e-3)."
        )
    if trainable_variables is None:
        return optimizer
    return ec.minimize(loss, optimizer, variables=_any_of(trainable_variables))


def write_summaries(name: str | None, loss: jax.Array, regularization_loss: jax.Array | None) -> None:
    """Writes the summaries `loss/<name>` and `regularization_loss[/<name>]`. Outside a model_fn it does nothing.

    The loop writes `loss` itself, so a head without a name does not write it.
    """
    if not in_model_fn():
        return
    if name:
        ec.summary.scalar(f"loss/{name}", loss)
    if regularization_loss is not None:
        ec.summary.scalar(f"regularization_loss/{name}" if name else "regularization_loss", regularization_loss)


def _any_of(names: Sequence[Any]) -> str:
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise ArgumentError(f"trainable_variables must hold names of variables (strings). Given: {wrong[0]!r}.")
    # Without names, the pattern matches nothing.
    return "|".join(re.escape(name) for name in names) or "(?!)"
