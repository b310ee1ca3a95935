"""A traced program in the form that the converter to ONNX and onnxruntime take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core

_CALLS = ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call")
_MOST_POOLED = 3  # dimensions that onnxruntime pools over


def evaluated(program: core.ClosedJaxpr, arrays: Sequence[Any]) -> list[Any]:
    """The outputs of a program, with calls written out and poolings of images over at most three dimensions."""
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
    """The names of the primitives of a program that `evaluated` leaves."""
    found: set[str] = set()
    for equation in program.eqns:
        called = _called(equation)
        found |= {equation.primitive.name} if called is None else operations(called.jaxpr)
        found |= {name for inner in _bodies(equation).values() for one in inner for name in operations(one.jaxpr)}
    return found - _WRITTEN_OTHERWISE.keys()


def _called(equation: Any) -> Any:
    """The program that an equation calls, if it is only a call."""
    if equation.primitive.name not in _CALLS:
        return None
    return equation.params.get("jaxpr", equation.params.get("call_jaxpr"))


def _chosen(equation: Any, taken: Sequence[Any]) -> Any:
    """The branch of a choice that is made here, by the platform."""
    if equation.primitive.name != "cond" or not isinstance(taken[0], int):
        return None
    return equation.params["branches"][taken[0]]


def _bodies(equation: Any) -> dict[str, tuple[core.ClosedJaxpr, ...]]:
    """The programs that a loop or a branch holds, by parameter; none for a call, which is written out."""
    if _called(equation) is not None:
        return {}
    held = {name: value if isinstance(value, tuple) else (value,) for name, value in equation.params.items()}
    return {name: one for name, one in held.items() if one and all(isinstance(x, core.ClosedJaxpr) for x in one)}


def _rewritten(body: core.ClosedJaxpr) -> core.ClosedJaxpr:
    """A program that a loop or a branch holds, in the form of `evaluated`."""
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
    """An array that jax wants on other devices: a graph knows no devices."""
    return taken[0]


def _of_cpu(taken: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """The place of the branch for a CPU, where a graph runs."""
    return next(place for place, names in enumerate(parameters["platforms"]) if names is None or "cpu" in names)


def _stacked(taken: Sequence[Any], parameters: dict[str, Any]) -> Any:
    axis = parameters["axis"]
    return lax.concatenate([lax.expand_dims(jnp.asarray(array), (axis,)) for array in taken], axis)


def _before(taken: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """`<` with NaN after all numbers; jnp.searchsorted, its user, first unifies the signs of zeros and NaNs."""
    left, right = taken
    less = lax.lt(left, right)
    if not jnp.issubdtype(jnp.result_type(left), jnp.floating):
        return less
    return lax.bitwise_or(less, lax.bitwise_and(lax.eq(left, left), lax.ne(right, right)))


def _not_after(taken: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """`<=` with NaN after all numbers, as `_before`."""
    left, right = taken
    found = lax.le(left, right)
    if not jnp.issubdtype(jnp.result_type(left), jnp.floating):
        return found
    return lax.bitwise_or(found, lax.ne(right, right))


#: Primitives that the converter does not know, in terms of others.
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
    """Whether it pools over more dimensions than onnxruntime does, the first and the last of them of size one."""
    unit = all(parameters[name][end] in (1, (0, 0)) for name in _WINDOW for end in (0, -1))
    return len(parameters["window_dimensions"]) == _MOST_POOLED + 1 and unit


def _pooled(pool: Callable[..., Any], x: Any, parameters: dict[str, Any]) -> Any:
    """Pools (batch, height, width, channel) as (batch * channel, height, width)."""
    window = {name: (parameters[name][0], *parameters[name][1:-1]) for name in _WINDOW}
    images = jnp.moveaxis(x, -1, 1)
    found = pool(images.reshape(-1, *images.shape[2:]), **window)
    return jnp.moveaxis(found.reshape(*images.shape[:2], *found.shape[1:]), 1, -1)
