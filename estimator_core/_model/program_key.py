"""What makes two traced programs the same one: equal equations, constants and kinds of arguments, not equal names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

#: A part of a jaxpr: jax names the types of few.
_Part: TypeAlias = Any

#: The equations and the bytes of constants up to which a program is looked at.
_MOST_EQUATIONS, _MOST_BYTES = 4000, 1 << 22
#: Their rules of derivatives are functions, which a program that is compiled no longer asks.
_DERIVED = ("custom_jvp_call", "custom_vjp_call", "custom_lin")


class _UnknownError(Exception):
    """The program holds something that cannot be compared."""


class _Digest:
    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._equations = self._bytes = 0

    def value(self) -> bytes:
        return self._hash.digest()

    def program(self, found: _Part) -> None:
        """Adds a program, those within it included."""
        jaxpr, numbers = getattr(found, "jaxpr", found), dict[object, int]()
        self._equations += len(jaxpr.eqns)
        if jaxpr.effects or self._equations > _MOST_EQUATIONS:
            raise _UnknownError
        for constant in getattr(found, "consts", ()):
            self._constant(constant)
        self._declared((*jaxpr.constvars, *jaxpr.invars), numbers)
        for equation in _needed(jaxpr):
            name = equation.primitive.name
            self._text(name, repr(equation.ctx))
            self._used(equation.invars, numbers)
            derived = name.startswith(_DERIVED)
            for key, value in sorted(equation.params.items()):
                if not derived or hasattr(getattr(value, "jaxpr", value), "eqns"):
                    self._text(key)
                    self._parameter(value)
            self._declared(equation.outvars, numbers)
        self._used(jaxpr.outvars, numbers)

    def _text(self, *words: str) -> None:
        self._hash.update("\0".join(words).encode() + b"\1")

    def _declared(self, variables: Sequence[_Part], numbers: dict[object, int]) -> None:
        for variable in variables:
            numbers[variable] = len(numbers)
            aval = variable.aval
            self._text(str(aval), str(getattr(aval, "weak_type", "")))

    def _used(self, variables: Sequence[_Part], numbers: Mapping[object, int]) -> None:
        for variable in variables:
            if isinstance(variable, Literal):
                self._text(str(variable.aval), str(getattr(variable.aval, "weak_type", "")))
                self._constant(variable.val)
            else:
                self._text(str(numbers[variable]))

    def _parameter(self, value: _Part) -> None:
        if hasattr(getattr(value, "jaxpr", value), "eqns"):
            self.program(value)
        elif isinstance(value, tuple | list):
            self._text(type(value).__name__, str(len(value)))
            for one in value:
                self._parameter(one)
        elif isinstance(value, np.ndarray | jax.Array):
            self._constant(value)
        elif isinstance(value, jax.sharding.Mesh):
            self._text(repr(value), repr(value.devices.tolist()))
        elif isinstance(value, FunctionType) and value.__module__.startswith("jax.") and "<" not in value.__qualname__:
            self._text(value.__module__, value.__qualname__)  # a user's function may be defined again, with this name
        else:
            text = repr(value)
            if " at 0x" in text or (callable(value) and not isinstance(value, type | jax.sharding.AbstractMesh)):
                raise _UnknownError
            self._text(type(value).__name__, text)

    def _constant(self, constant: _Part) -> None:
        dtype = getattr(constant, "dtype", None)
        keys = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
        values = np.asarray(jax.random.key_data(constant) if keys else constant)
        self._bytes += values.nbytes
        if self._bytes > _MOST_BYTES or values.dtype == object:
            raise _UnknownError
        self._text(str(dtype), str(values.dtype), str(values.shape))
        self._hash.update(values.tobytes())


def _needed(jaxpr: _Part) -> list[_Part]:
    """The equations that the results need. A number that no result needs makes no other program."""
    wanted = {variable for variable in jaxpr.outvars if not isinstance(variable, Literal)}
    found: list[_Part] = []
    for equation in reversed(jaxpr.eqns):
        if not wanted.isdisjoint(equation.outvars):
            found.append(equation)
            wanted.update(variable for variable in equation.invars if not isinstance(variable, Literal))
    return found[::-1]


def program_key(traced: _Part) -> bytes | None:
    """A digest that two traced programs share only if they compute the same; None: this one cannot be compared.

    Programs of thousands of equations, of large constants, and those that call the host or hold functions are not.

    Args:
        traced: what `jax.jit(function).trace(...)` returned.

    Example:
        >>> a, b, c = (jax.jit(lambda x, by=by: x * by).trace(1.0) for by in (2.0, 2.0, 3.0))
        >>> program_key(a) == program_key(b), program_key(a) == program_key(c)
        (True, False)
    """
    digest = _Digest()
    try:
        digest.program(traced.jaxpr)
    except _UnknownError:
        return None
    return digest.value()
