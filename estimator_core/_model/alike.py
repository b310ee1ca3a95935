"""Variables whose first values one program computes: many with the same initialiser, shape and dtype."""

from __future__ import annotations

import types
from collections.abc import Hashable, Mapping

import jax

from estimator_core._model.variables import VariableSpec

_OF_JAX = jax.nn.initializers.zeros.__globals__


def repeated(specs: Mapping[str, VariableSpec], places: Mapping[str, object] | None, fewest: int) -> list[list[str]]:
    """Groups of paths whose variables differ in nothing but the path. XLA compiles a kernel for each use of a random
    initialiser in a program, so a program for each group is compiled sooner than one for all variables.

    Args:
        specs: variables with initialisers of `(key, shape, dtype)`.
        places: their shardings by path, if there are any.
        fewest: variables in a group.

    Example:
        >>> from estimator_core._model.variables import make_spec
        >>> specs = {name: make_spec(name, (2, 3), None) for name in "abcd"}
        >>> repeated(specs | {"e": make_spec("e", (3, 2), None)}, None, 4)
        [['a', 'b', 'c', 'd']]
    """
    groups: dict[Hashable, list[str]] = {}
    for path, spec in specs.items():
        if spec.memory is None and (meaning := _meaning(spec.initializer)) is not None:
            place = None if places is None else places[path]
            groups.setdefault((meaning, spec.shape, str(spec.dtype), place), []).append(path)
    return [paths for paths in groups.values() if len(paths) >= fewest]


def _meaning(initializer: object) -> Hashable:
    """Equal for two initialisers that jax has made alike. Others may depend on more than their arguments: on a counter,
    say, or on a file.
    """
    if not isinstance(initializer, types.FunctionType) or initializer.__globals__ is not _OF_JAX:
        return None
    around = [_number(cell.cell_contents) for cell in initializer.__closure__ or ()]
    # Nothing around: zeros and ones, which cost nothing.
    return (initializer.__code__, *around) if around and None not in around else None


def _number(value: object) -> Hashable:
    """What two values have in common only if they are the same, to the bit; None for what cannot be compared so."""
    if isinstance(value, tuple):
        parts = [_number(part) for part in value]
        return None if None in parts else (tuple, *parts)
    if isinstance(value, float):
        return type(value), value.hex()
    return (type(value), value) if isinstance(value, int | str | type) else None
