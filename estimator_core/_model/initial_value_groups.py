"""Finds variables whose first values one program can compute. Their shapes may differ only in the number of rows."""

from __future__ import annotations

import math
import types
from collections.abc import Hashable, Mapping
from typing import Any, cast

import jax

from estimator_core._model.variables import VariableSpec

_OF_JAX = jax.nn.initializers.zeros.__globals__
#: These multiply random numbers by a constant that does not depend on the shape.
_ANY_SHAPE = [
    getattr(make(), "__code__", None)
    for make in (jax.nn.initializers.normal, jax.nn.initializers.truncated_normal, jax.nn.initializers.uniform)
]
#: Above this many numbers, drawing unused rows takes longer than compiling.
_MOST_DRAWN = 2**20


def repeated(
    specs: Mapping[str, VariableSpec], places: Mapping[str, object] | None, fewest: int
) -> list[tuple[tuple[int, ...], list[str]]]:
    """Groups of paths whose variables differ in nothing but the path, and perhaps the rows.

    XLA compiles a kernel for each use of a random initialiser in a program, so a program for each group is compiled
    sooner than one for all.

    Args:
        specs: variables with initialisers of `(key, shape, dtype)`.
        places: the shardings by path. None without shardings.
        fewest: the smallest number of variables in a group.

    Returns:
        The shape to draw and the paths of each group. A variable consists of the first rows of the drawn array.

    Example:
        >>> from estimator_core._model.variables import make_spec
        >>> specs = {name: make_spec(name, (2, 3), None) for name in "abcd"}
        >>> repeated(specs | {"e": make_spec("e", (3, 2), None)}, None, 4)
        [((2, 3), ['a', 'b', 'c', 'd'])]
        >>> normal = jax.nn.initializers.normal()
        >>> repeated({f"t{rows}": make_spec(f"t{rows}", (rows, 8), normal) for rows in (5, 9, 16)}, None, 3)
        [((16, 8), ['t5', 't9', 't16'])]
    """
    groups: dict[Hashable, list[str]] = {}
    for path, spec in specs.items():
        if spec.memory is None and (meaning := _meaning(spec.initializer)) is not None:
            place = None if places is None else places[path]
            shape = spec.shape if places is not None else _rounded(spec)
            groups.setdefault((meaning, shape, str(spec.dtype), place), []).append(path)
    # The shapes of a group differ only in the number of rows, so the largest shape has the most rows.
    return [(max(specs[path].shape for path in paths), paths) for paths in groups.values() if len(paths) >= fewest]


def _rounded(spec: VariableSpec) -> tuple[int, ...]:
    """Returns the shape. Its rows are rounded up to a power of four if further rows do not change the first ones."""
    code = getattr(spec.initializer, "__code__", None)
    partitionable: bool = cast(Any, jax.config).jax_threefry_partitionable
    if code not in _ANY_SHAPE or not partitionable or 0 in (spec.shape or (0,)):
        return spec.shape
    shape = (4 ** (((spec.shape[0] - 1).bit_length() + 1) // 2), *spec.shape[1:])
    return shape if math.prod(shape) <= _MOST_DRAWN else spec.shape


def _meaning(initializer: object) -> Hashable:
    """Returns a value that is equal for two initialisers only if jax made them with equal arguments; None for others.

    Others may depend on more than their arguments, for example on a counter or a file.
    """
    if not isinstance(initializer, types.FunctionType) or initializer.__globals__ is not _OF_JAX:
        return None
    around = [_number(cell.cell_contents) for cell in initializer.__closure__ or ()]
    # Without arguments they are zeros and ones, which cost nothing.
    return (initializer.__code__, *around) if around and None not in around else None


def _number(value: object) -> Hashable:
    """Returns a value that is equal for two values only if their bits are the same; None if that is unknown."""
    if isinstance(value, tuple):
        parts = [_number(part) for part in value]
        return None if None in parts else (tuple, *parts)
    if isinstance(value, float):
        return type(value), value.hex()
    return (type(value), value) if isinstance(value, int | str | type) else None
