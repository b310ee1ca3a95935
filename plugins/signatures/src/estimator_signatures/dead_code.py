"""Removes the computations of a function that its results do not depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import jaxpr_as_fun
from jax.interpreters import partial_eval


def without_dead_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the same function, traced without computations that no output needs.

    A module that is created in model_fn computes initial values, which an exported program must not contain. Compilers
    remove them, but converters to other formats cannot handle them.

    Args:
        function: a traceable function of arrays in any structure.
    """

    def pruned(*arguments: object) -> Any:
        closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        leaves, structure = jax.tree.flatten(shapes)
        jaxpr, _ = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(leaves), instantiate=True)
        outputs = jaxpr_as_fun(closed.replace(jaxpr=jaxpr))(*jax.tree.leaves(arguments))
        return jax.tree.unflatten(structure, outputs)

    return pruned
