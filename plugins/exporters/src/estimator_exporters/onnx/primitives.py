"""Rewrites a traced program into the form that the converter to ONNX and onnxruntime accept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core

_CALLS = ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call")
_MOST_POOLED = 3  # the largest number of dimensions that onnxruntime pools over


def evaluated(program: core.ClosedJaxpr, arrays: Sequence[Any]) -> list[Any]:
    """Computes the outputs of a program. Calls are inlined, and image poolings use at most three dimensions."""
    values: dict[Any, Any] = dict(zip(program.jaxpr.constvars, program.consts, strict=True))
    values |= dict(zip(program.jaxpr.invars, arrays, strict=True))

    def read(variable: Any) -> Any:
        return variable.val if isinstance(variable, core.Literal) else values[variable]

    for equation in program.jaxpr.eqns:
        taken, name = [read(variable) for variable in equation.invars], equation.primitive.name
        called = _called(equation) or _chosen(equation, taken)
        if called is not None:
            given = evaluated(called, taken[-len(called.in_avals) :] if called.in_avals else [])
        elif name in _WRITTEN_OTHERWISE:
            given = [_WRITTEN_OTHERWISE[name](taken, equation.params)]
        elif name in _POOLINGS and _is_image(equation.params):
            given = [_pooled(_POOLINGS[name], taken[0], equation.params)]
        else:
            given = _as_it_is(program.jaxpr, equation, taken)
        values |= dict(zip(equation.outvars, given, strict=True))
    return [read(variable) for variable in program.jaxpr.outvars]


def operations(program: Any) -> set[str]:
    """Returns the names of the primitives that remain after `evaluated`."""
    found: set[str] = set()
    for equation in program.eqns:
        called = _called(equation)
        found |= {equation.primitive.name} if called is None else operations(called.jaxpr)
        found |= {name for inner in _bodies(equation).values() for one in inner for name in operations(one.jaxpr)}
    return found - _WRITTEN_OTHERWISE.keys()


def _called(equation: Any) -> Any:
    """Returns the program that an equation calls, if the equation is only a call."""
    if equation.primitive.name not in _CALLS:
        return None
    return equation.params.get("jaxpr", equation.params.get("call_jaxpr"))


def _chosen(equation: Any, taken: Sequence[Any]) -> Any:
    """Returns the branch of a conditional that the platform decides."""
    if equation.primitive.name != "cond" or not isinstance(taken[0], int):
        return None
    return equation.params["branches"][taken[0]]


def _bodies(equation: Any) -> dict[str, tuple[core.ClosedJaxpr, ...]]:
    """Returns the programs of a loop or a branch, by parameter. Empty for a call, which is inlined."""
    if _called(equation) is not None:
        return {}
    held = {name: value if isinstance(value, tuple) else (value,) for name, value in equation.params.items()}
    return {name: one for name, one in held.items() if one and all(isinstance(x, core.ClosedJaxpr) for x in one)}


def _rewritten(body: core.ClosedJaxpr) -> core.ClosedJaxpr:
    """Returns the program of a loop or a branch in the form of `evaluated`."""
    inputs = [jax.ShapeDtypeStruct(one.shape, one.dtype, weak_type=one.weak_type) for one in body.in_avals]
    return jax.make_jaxpr(lambda *arrays: evaluated(body, arrays))(*inputs)


def _as_it_is(program: Any, equation: Any, taken: Sequence[Any]) -> Sequence[Any]:
    bodies = {name: tuple(map(_rewritten, held)) for name, held in _bodies(equation).items()}
    params = {
        name: (bodies[name] if isinstance(value, tuple) else bodies[name][0]) if name in bodies else value
        for name, value in equation.params.items()
    }
    named = {v: x for v, x in zip(equation.invars, taken, strict=True) if not isinstance(v, core.Literal)}
    one = equation.replace(params=params)
    alone = program.replace(constvars=[], invars=list(named), outvars=equation.outvars, eqns=[one])
    return core.jaxpr_as_fun(core.ClosedJaxpr(alone, []))(*named.values())


def _as_given(taken: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """Returns an array that jax would move to other devices. It is unchanged, because a graph has no devices."""
    return taken[0]


def _of_cpu(taken: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """Returns the index of the branch for a CPU, on which a graph runs."""
    return next(place for place, names in enumerate(parameters["platforms"]) if names is None or "cpu" in names)


def _stacked(taken: Sequence[Any], parameters: dict[str, Any]) -> Any:
    axis = parameters["axis"]
    return lax.concatenate([lax.expand_dims(jnp.asarray(array), (axis,)) for array in taken], axis)


def _before(taken: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """Computes `<` with NaN after all numbers. Its user, jnp.searchsorted, unifies the signs of zeros and NaNs."""
    left, right = taken
    less = lax.lt(left, right)
    if not jnp.issubdtype(jnp.result_type(left), jnp.floating):
        return less
    return lax.bitwise_or(less, lax.bitwise_and(lax.eq(left, left), lax.ne(right, right)))


def _not_after(taken: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """Computes `<=` with NaN after all numbers, like `_before`."""
    left, right = taken
    found = lax.le(left, right)
    if not jnp.issubdtype(jnp.result_type(left), jnp.floating):
        return found
    return lax.bitwise_or(found, lax.ne(right, right))


#: Replacements for primitives that the converter does not support.
_WRITTEN_OTHERWISE: dict[str, Callable[[Sequence[Any], dict[str, Any]], Any]] = {
    "le_to": _not_after,
    "lt_to": _before,
    "platform_index": _of_cpu,
    "reshard": _as_given,
    "stack": _stacked,
}


def _maximum(x: Any, **window: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, **window)


def _sum(x: Any, **window: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, **window)


_POOLINGS: dict[str, Callable[..., Any]] = {"reduce_window_max": _maximum, "reduce_window_sum": _sum}
_WINDOW = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")


def _is_image(parameters: dict[str, Any]) -> bool:
    """Returns whether a pooling has one dimension too many for onnxruntime, with a first and last dimension of size
    one.
    """
    unit = all(parameters[name][end] in (1, (0, 0)) for name in _WINDOW for end in (0, -1))
    return len(parameters["window_dimensions"]) == _MOST_POOLED + 1 and unit


def _pooled(pool: Callable[..., Any], x: Any, parameters: dict[str, Any]) -> Any:
    """Pools (batch, height, width, channel) as (batch * channel, height, width)."""
    window = {name: (parameters[name][0], *parameters[name][1:-1]) for name in _WINDOW}
    images = jnp.moveaxis(x, -1, 1)
    found = pool(images.reshape(-1, *images.shape[2:]), **window)
    return jnp.moveaxis(found.reshape(*images.shape[:2], *found.shape[1:]), 1, -1)
