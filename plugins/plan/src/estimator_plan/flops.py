"""Floating point operations of a traced program, counted from its jaxpr.

The count of XLA (`cost_analysis`) includes the body of a loop once, for any trip count. A model that scans over its
layers, or a step that accumulates over micro-batches, would seem many times cheaper than it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(kw_only=True)
class FlopCount:
    """Operations of matrix products and convolutions. A multiplication and an addition are two operations.

    Attributes:
        by_dtype: the operations by the dtype of the operands.
        notes: the parts that could not be counted exactly, once each.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> x, w = jnp.ones((4, 8)), jnp.ones((12, 8, 8))
        >>> step = jax.make_jaxpr(lambda x, w: jax.lax.scan(lambda c, w: (c @ w, None), x, w)[0])(x, w)
        >>> count_flops(step).total == 12 * 2 * 4 * 8 * 8
        True
    """

    by_dtype: Counter[str] = field(default_factory=Counter)
    notes: dict[str, None] = field(default_factory=dict[str, None])

    @property
    def total(self) -> float:
        """The operations of all dtypes together."""
        return float(sum(self.by_dtype.values()))


def count_flops(jaxpr: Any) -> FlopCount:
    """Counts the operations of a program, over all devices.

    Loops count as often as they run. Of several branches, the most expensive one counts. Work that rematerialisation
    repeats counts twice. Work that no output needs does not count. Elementwise operations are not counted, because
    memory limits their time.

    Args:
        jaxpr: a (closed) jaxpr, such as `jax.jit(f).trace(...).jaxpr`.
    """
    from jax.interpreters import partial_eval

    # The compiler removes the work that no output needs, such as predictions in training.
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    needed, _ = partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    found = FlopCount()
    found.by_dtype = _of_jaxpr(needed, found.notes, {})
    return found


def _of_jaxpr(jaxpr: Any, notes: dict[str, None], seen: dict[int, Counter[str]]) -> Counter[str]:
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    if id(jaxpr) not in seen:
        total: Counter[str] = Counter()
        for equation in jaxpr.eqns:
            total += _of_equation(equation, notes, seen)
        seen[id(jaxpr)] = total
    return seen[id(jaxpr)]


def _of_equation(equation: Any, notes: dict[str, None], seen: dict[int, Counter[str]]) -> Counter[str]:
    name, params = equation.primitive.name, equation.params
    if name in _COUNTED:
        shapes = [value.aval.shape for value in (*equation.invars, *equation.outvars)]
        return Counter({str(equation.invars[0].aval.dtype): _COUNTED[name](shapes, params)})
    inner = [_of_jaxpr(each, notes, seen) for each in _jaxprs(params)]
    if not inner:
        if name.endswith("_call") and name != "pure_callback":
            notes.setdefault(f"the operations of {name} are not counted")
        return Counter()
    if name == "scan":
        return _times(sum(inner, Counter()), params["length"])
    if name == "cond":
        return max(inner, key=lambda branch: sum(branch.values()))
    if name == "while" and any(inner):
        notes.setdefault("a while loop with an unknown number of rounds is counted once")
    if name == "shard_map":  # the body is the program of one device
        mesh = params["mesh"]
        manual = params.get("newly_manual_axes", params.get("manual_axes", mesh.axis_names))
        return _times(sum(inner, Counter()), math.prod(mesh.shape[axis] for axis in manual))
    if name == "pallas_call":
        grid = params["grid_mapping"].grid
        return _times(sum(inner, Counter()), math.prod(size for size in grid if isinstance(size, int)))
    return sum(inner, Counter())


def _times(count: Counter[str], factor: int) -> Counter[str]:
    return Counter({dtype: value * factor for dtype, value in count.items()})


def _jaxprs(params: Mapping[str, Any]) -> Iterator[Any]:
    """Yields the programs inside an equation: parameters that are jaxprs, or tuples of jaxprs (branches of a cond)."""
    for value in params.values():
        for item in value if isinstance(value, tuple) else (value,):
            if hasattr(getattr(item, "jaxpr", item), "eqns"):
                yield item


def _dot_general(shapes: list[tuple[int, ...]], params: Mapping[str, Any]) -> int:
    (contracted, _), _ = params["dimension_numbers"]
    return 2 * math.prod(shapes[-1]) * math.prod(shapes[0][axis] for axis in contracted)


def _conv(shapes: list[tuple[int, ...]], params: Mapping[str, Any]) -> int:
    # The dimension numbers order the kernel as (out features, in features of a group, *window). In a dilated input (the
    # gradient of a strided convolution), all but every n-th value are zeros, which devices need not multiply.
    kernel = params["dimension_numbers"].rhs_spec
    window = math.prod(shapes[1][axis] for axis in kernel[1:])
    return 2 * math.prod(shapes[-1]) * window // math.prod(params["lhs_dilation"])


def _ragged_dot(shapes: list[tuple[int, ...]], params: Mapping[str, Any]) -> int:
    return 2 * math.prod(shapes[-1]) * shapes[0][-1]


_COUNTED: Mapping[str, Callable[[list[tuple[int, ...]], Mapping[str, Any]], int]] = {
    "dot_general": _dot_general,
    "conv_general_dilated": _conv,
    "ragged_dot": _ragged_dot,
}
