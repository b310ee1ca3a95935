"""Recomputes the other results of a function for given outputs, such as the metrics for the outputs of an export."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun


def beside_outputs(
    function: Callable[..., tuple[Mapping[str, Any], Any]], arguments: tuple[object, ...], outputs: Mapping[str, object]
) -> Any:
    """Computes the second result of a function from other values of its first result; traceable.

    Args:
        function: returns outputs by name, and anything else; traceable.
        arguments: the arguments of the function.
        outputs: other values of the outputs, with the same names, shapes and dtypes.

    Example:
        >>> def function(x):
        ...     doubled = x * 2
        ...     return {"doubled": doubled}, doubled.sum()
        >>> float(beside_outputs(function, (jax.numpy.ones(3),), {"doubled": jax.numpy.zeros(3)}))
        0.0
    """
    closed, (first, second) = jax.make_jaxpr(function, return_shape=True)(*arguments)
    jaxpr, count = closed.jaxpr, len(jax.tree.leaves(first))
    given = dict(zip(jaxpr.outvars[:count], jax.tree.leaves(outputs), strict=True))
    values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    values |= dict(zip(jaxpr.invars, jax.tree.leaves(arguments), strict=True))
    for equation in jaxpr.eqns:
        taken = {one: values[one] for one in equation.invars if not isinstance(one, Literal)}
        alone = jaxpr.replace(constvars=[], invars=list(taken), outvars=equation.outvars, eqns=[equation])
        found = jaxpr_as_fun(ClosedJaxpr(alone, []))(*taken.values())
        values |= {one: given.get(one, value) for one, value in zip(equation.outvars, found, strict=True)}
    leaves = [one.val if isinstance(one, Literal) else values[one] for one in jaxpr.outvars[count:]]
    return jax.tree.unflatten(jax.tree.structure(second), leaves)
