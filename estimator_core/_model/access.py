"""Functions for variables in a model_fn: `ec.get_variable`, `ec.set_variable` and related functions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax

from estimator_core._model.scope import active_scope
from estimator_core._model.variables import VariableSpec, make_spec


def get_variable(
    name: str, shape: Sequence[int] | None = None, initializer: Any = None, dtype: Any = None, trainable: bool = True
) -> jax.Array:
    """Returns the value of a variable, and declares the variable if it is new.

    The same path, used again in this or another mode, is the same variable.

    Args:
        name: the name in the current variable scope. Parts are joined by `/`.
        shape: the shape. It may be omitted if `initializer` is an array.
        initializer: a function of `(key, shape, dtype)` like those of `jax.nn.initializers`, or a numpy array. Default:
            Glorot's uniform initialiser for floating point variables of two or more axes, zeros for all others.
        dtype: the dtype. Default: float32, or the dtype of the array passed as initializer.
        trainable: False for model state, which `set_variable` writes.

    Returns:
        The value, `dtype[shape]`.

    Raises:
        ModelFnError: called outside model_fn.
        VariableError: the declaration cannot be used, or differs from an earlier one of the same path. Or EVAL or
            PREDICT requests a variable that the trained state lacks.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     kernel = get_variable("kernel", (4, 1))
        ...     predictions = features @ kernel

    Source: `tf.compat.v1.get_variable`.
    """
    scope = active_scope("ec.get_variable")
    spec = make_spec(name, shape, initializer, dtype, trainable)
    return scope.read(make_spec(scope.path(name), spec.shape, spec.initializer, spec.dtype, spec.trainable))


def set_variable(name: str, value: Any) -> None:
    """Sets a variable of the model state to a new value, for the rest of model_fn and the next training step.

    In EVAL and PREDICT the new value lasts until the end of model_fn.

    Args:
        name: the name that was passed to `get_variable`, in the same variable scope.
        value: an array of the variable's shape and dtype (Python numbers are converted).

    Raises:
        ModelFnError: called outside model_fn.
        VariableError: there is no such variable, it is trainable, the shape or dtype differs, or the call is inside
            scan, cond, vmap or grad.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     seen = get_variable("batches_seen", (), dtype="int32", trainable=False)
        ...     set_variable("batches_seen", seen + 1)
    """
    scope = active_scope("ec.set_variable")
    scope.write(scope.path(name), value)


def variable_scope(name: str) -> AbstractContextManager[None]:
    """Prefixes the names of variables, modules, keys and outputs inside the block.

    Args:
        name: one or more parts joined by `/`.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     with variable_scope("encoder"):
        ...         kernel = get_variable("kernel", (4, 2))  # its path is "encoder/kernel"

    Source: `tf.compat.v1.variable_scope`; a scope that is entered again continues, as with `reuse=tf.AUTO_REUSE`.
    """
    return active_scope("ec.variable_scope").inside(name)


def next_rng_key(name: str = "rng") -> jax.Array:
    """Returns a random key of this step. Each call returns a different key. A resumed run gets the same keys.

    The key depends on the seed, the step, the variable scope, `name`, and the number of earlier calls with that name.

    Args:
        name: separates keys of one scope, so that a new key does not change the others.

    Returns:
        A scalar key, like those of `jax.random.key`.

    Raises:
        ModelFnError: called outside model_fn.
        VariableError: called inside scan, cond, vmap or grad, where every iteration or example would get the same key.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     noise = jax.random.normal(next_rng_key("noise"), features.shape)
    """
    scope = active_scope("ec.next_rng_key")
    return scope.key(scope.path(name))


def trainable_variables() -> list[VariableSpec]:
    """Lists the trainable variables that model_fn has requested so far, in that order.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     kernel = get_variable("kernel", (4, 2))
        ...     assert [v.name for v in trainable_variables()] == ["kernel"]

    Source: `tf.compat.v1.trainable_variables`.
    """
    return [spec for spec in active_scope("ec.trainable_variables").met.values() if spec.trainable]
