"""First values of variables: one small compiled function of their initialisers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.errors import VariableError
from estimator_core.model.rng import seed_words, variable_key
from estimator_core.model.variables import VariableSpec


def initialize(
    specs: Mapping[str, VariableSpec], seed: int, *, out_shardings: Mapping[str, Any] | None = None
) -> dict[str, jax.Array]:
    """Computes the first values of variables.

    A value depends on the seed and its variable's path and declaration, not on which other variables there are or in which order.

    Args:
        specs: the variables, by path.
        seed: the random seed of the run; 64 bits count.
        out_shardings: a sharding for each path; None leaves everything on the default device.

    Returns:
        The values by path, in the order of `specs`.

    Raises:
        VariableError: an initialiser uses a value of the trace it was declared in, or gives another shape or dtype than declared.

    Example:
        >>> from estimator_core.model.variables import make_spec
        >>> specs = {"scale": make_spec("scale", (2,), jax.nn.initializers.ones)}
        >>> initialize(specs, seed=1)["scale"].tolist()
        [1.0, 1.0]
    """
    computed = {path: spec for path, spec in specs.items() if callable(spec.initializer)}
    placement = {path: out_shardings[path] for path in computed} if out_shardings is not None else None
    compute = jax.jit(
        lambda words: {path: _first_value(spec, words) for path, spec in computed.items()}, out_shardings=placement
    )
    words = np.array(seed_words(seed), np.uint32)
    try:
        values = compute(words) if computed else {}
    except jax.errors.UnexpectedTracerError as error:
        raise _leak(computed, words) from error
    return {path: values[path] if path in values else _placed(spec, out_shardings) for path, spec in specs.items()}


def _first_value(spec: VariableSpec, words: Any) -> jax.Array:
    initializer = spec.initializer
    assert callable(initializer)
    value = jnp.asarray(initializer(variable_key(words, spec.name), spec.shape, spec.dtype))
    if value.shape != spec.shape or value.dtype != spec.dtype:
        raise VariableError(
            f"The initializer of variable {spec.name!r} gave {value.dtype}{list(value.shape)}, declared is {spec.dtype}{list(spec.shape)}. "
            "It is called with (key, shape, dtype) and must give an array of that shape and dtype."
        )
    return value


def _placed(spec: VariableSpec, out_shardings: Mapping[str, Any] | None) -> jax.Array:
    # A copy of our own: on CPU, JAX may use a numpy array's memory in place, and the caller's array must never change.
    array = np.array(cast(Any, spec.initializer))
    return jnp.array(array, copy=True) if out_shardings is None else jax.device_put(array, out_shardings[spec.name])


def _leak(computed: Mapping[str, VariableSpec], words: Any) -> VariableError:
    """Names the variable whose initialiser carries a traced value, by trying them one at a time."""
    for path, spec in computed.items():
        try:
            jax.eval_shape(lambda w, spec=spec: _first_value(spec, w), words)
        except jax.errors.UnexpectedTracerError:
            return VariableError(
                f"The initializer of variable {path!r} uses a value that exists only while model_fn is traced: a first value must not depend "
                "on a batch or on another variable. Use a function of (key, shape, dtype), or a numpy array made outside model_fn."
            )
    return VariableError("An initializer uses a value that exists only while model_fn is traced.")
