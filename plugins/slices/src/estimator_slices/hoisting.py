"""Splits a traced function into the part that does not depend on one of its inputs, and the rest.

The metrics of many slices are computed from one forward pass. Only the part that depends on the weights of examples is
computed again for each slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core as jax_core


def hoisted(function: Callable[..., Any], args: Sequence[Any], last: Any) -> tuple[Callable[[Any], Any], Any]:
    """Returns `function(*args, last)` as a function of the last argument only. The independent part is computed once.

    Args:
        function: a pure function. It is called once, in a separate trace.
        args: the arrays or trees of arrays.
        last: an array with the shape and dtype of the last argument.

    Returns:
        The function, and the shapes of its result.

    Example:
        >>> import jax.numpy as jnp
        >>> rest, shape = hoisted(lambda x, w: (jnp.tanh(x) * w).sum(), [jnp.zeros(3)], jnp.ones(3))
        >>> float(rest(jnp.ones(3))), shape.shape
        (0.0, ())
    """
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*args, last)
    treedef = jax.tree.structure(shapes)
    jaxpr = closed.jaxpr
    varying, early, late = _parted(jaxpr)
    used = [v for equation in late for v in _variables(equation.invars)] + _variables(jaxpr.outvars)
    needed = [v for v in dict.fromkeys(used) if v not in varying]
    first = jaxpr.replace(eqns=early, outvars=needed)
    second = jaxpr.replace(eqns=late, constvars=[], invars=[*needed, jaxpr.invars[-1]])
    known = jax_core.jaxpr_as_fun(jax_core.ClosedJaxpr(first, closed.consts))(
        *jax.tree.leaves(tuple(args)), jnp.zeros_like(last)
    )
    rest = jax_core.jaxpr_as_fun(jax_core.ClosedJaxpr(second, []))
    return lambda value: jax.tree.unflatten(treedef, rest(*known, value)), shapes


def dependent(function: Callable[..., Any], args: Sequence[Any], last: Any) -> Any:
    """Returns for each leaf of the result of `function(*args, last)` whether it depends on the last argument.

    Example:
        >>> import jax.numpy as jnp
        >>> dependent(lambda x, w: (x.sum(), (x * w).sum()), [jnp.zeros(3)], jnp.ones(3))
        (False, True)
    """
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*args, last)
    varying, _, _ = _parted(closed.jaxpr)
    found = [not varying.isdisjoint(_variables([leaf])) for leaf in closed.jaxpr.outvars]
    return jax.tree.unflatten(jax.tree.structure(shapes), found)


def _parted(jaxpr: Any) -> tuple[set[Any], list[Any], list[Any]]:
    """Returns the variables that depend on the last input, and the equations that do not and that do."""
    varying, early, late = {jaxpr.invars[-1]}, list[Any](), list[Any]()
    for equation in jaxpr.eqns:
        if varying.isdisjoint(_variables(equation.invars)):
            early.append(equation)
        else:
            late.append(equation)
            varying.update(equation.outvars)
    return varying, early, late


def _variables(values: Any) -> list[Any]:
    return [value for value in values if not isinstance(value, jax_core.Literal)]
