"""Compiled programs that all Estimators of a process share, and the test whether two traced programs are equal."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import Literal, jaxpr_as_fun
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

from estimator_core._types import PyTree

#: A part of a jaxpr. jax has types for only a few of them.
_Part: TypeAlias = Any

#: The largest numbers of equations and of bytes of constants of a program that is compared.
_MOST_EQUATIONS, _MOST_BYTES = 4000, 1 << 22
#: The derivative rules of these are functions, which a compiled program no longer uses.
_DERIVED = ("custom_jvp_call", "custom_vjp_call", "custom_lin")


class _UnknownError(Exception):
    """The program contains something that cannot be compared."""


class _Digest:
    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._equations = self._bytes = 0

    def value(self) -> bytes:
        return self._hash.digest()

    def program(self, found: _Part) -> None:
        """Adds a program, including the programs inside it."""
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
            self._text(value.__module__, value.__qualname__)  # a user's function may be redefined with the same name
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
    """Returns the equations that the results need. A number that no result needs does not make programs different."""
    wanted = {variable for variable in jaxpr.outvars if not isinstance(variable, Literal)}
    found: list[_Part] = []
    for equation in reversed(jaxpr.eqns):
        if not wanted.isdisjoint(equation.outvars):
            found.append(equation)
            wanted.update(variable for variable in equation.invars if not isinstance(variable, Literal))
    return found[::-1]


def program_key(traced: _Part) -> bytes | None:
    """Returns a digest that is equal only if two traced programs compute the same; None if the program cannot be
    compared.

    Programs with thousands of equations or large constants, and those that call the host or contain functions, cannot
    be compared.

    Args:
        traced: the result of `jax.jit(function).trace(...)`.

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


#: The largest number of stored programs. The least recently used one is removed first.
_MOST = 64
#: The number of calls with other shapes after which a function uses `jax.jit` for all its calls.
_PATIENCE = 16

_known: OrderedDict[object, PyTree] = OrderedDict()
_lock = threading.Lock()


class SharedJit:
    """`jax.jit(function)`, whose first program is shared with another function if both trace to the same program.

    Each trial of a sweep, run of a population and fold of a cross-validation has its own Estimator. Their functions
    differ, but their programs do not. Only tracing shows this, so each function is traced.

    Args:
        function: a function of positional arrays.
        options: the options of `jax.jit`.

    Example:
        >>> first, second = (SharedJit(lambda x: x + 1) for _ in range(2))
        >>> first(1.0), second(2.0), first.compiled is second.compiled
        (Array(2., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True), True)
    """

    def __init__(self, function: Callable[..., PyTree], **options: PyTree) -> None:
        self._jit: PyTree = jax.jit(function, **options)
        self._options = tuple(sorted((name, str(value)) for name, value in options.items()))
        self._asked = False
        self._others = 0
        self.compiled: PyTree = None

    def __call__(self, *args: PyTree) -> PyTree:
        if self.compiled is not None:
            try:
                return self.compiled(*args)
            except (TypeError, ValueError):  # other shapes or devices, refused before the program runs
                self._others += 1
                if self._others > _PATIENCE:
                    self.compiled = None
        elif not self._asked:
            self._asked = True
            self.compiled = self._found(args)
            if self.compiled is not None:
                return self.compiled(*args)
        return self._jit(*args)

    def direct(self, *args: PyTree) -> Callable[..., PyTree]:
        """Returns the function to call in a long loop, without running it.

        It is `jax.jit` itself, which is fastest, if no other function with this program has been compiled before.
        Others may then share the program.
        """
        if not self._asked:
            self._asked = True
            self.compiled = self._found(args, alone=True)
        return self._jit if self.compiled is None else self

    def trace(self, *args: PyTree) -> PyTree:
        """See `jax.jit`."""
        return self._jit.trace(*args)

    def lower(self, *args: PyTree) -> PyTree:
        """See `jax.jit`."""
        return self._jit.lower(*args)

    def _found(self, args: tuple[PyTree, ...], *, alone: bool = False) -> PyTree:
        """Returns the compiled program for these arguments; None if it is not shared, or the first of its kind is
        `alone`.
        """
        config: PyTree = jax.config
        leaves, structure = jax.tree.flatten(args)
        if config.jax_disable_jit or config.jax_debug_nans or config.jax_debug_infs:
            return None
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            return None
        traced = self._jit.trace(*args)
        digest = None if _leaks(traced, len(leaves)) else program_key(traced)
        if digest is None:
            return None
        where = tuple(getattr(leaf, "sharding", None) for leaf in leaves)
        # The traced program has its mesh without the devices.
        given = config.jax_default_device, _mesh(), config.jax_enable_x64, self._options
        key = digest, structure, jax.tree.structure(traced.out_info), where, given
        with _lock:
            known, compiled = key in _known, _known.get(key)
            _keep(key, compiled)
        if compiled is None and (known or not alone):
            compiled = traced.lower().compile()
            with _lock:
                _keep(key, compiled)
        return compiled


def _keep(key: object, compiled: PyTree) -> None:
    """Stores a program, or the record that it was requested, as the newest entry."""
    _known[key] = compiled
    _known.move_to_end(key)
    while len(_known) > _MOST:
        _known.popitem(last=False)


#: The largest size in bytes of an array of one number that `computed_once` writes itself. Each such result in a program
#: takes three milliseconds to compile.
_MOST_WRITTEN = 1 << 20


def computed_once(function: Callable[..., PyTree], *args: PyTree) -> PyTree:
    """`jax.jit(function)(*args)` on one device, for a function that is called once, such as the one for the first slots
    of an optimizer.

    Its program does not compute results that are constant numbers or small arrays of one number. So functions that
    differ only in these share a program, and if nothing else is left, no program is needed.

    Example:
        >>> rate = 0.1
        >>> computed_once(lambda x: {"rate": jnp.float32(rate), "slots": 0 * x}, jnp.ones(2))["rate"]
        Array(0.1, dtype=float32)
    """
    traced = jax.jit(function).trace(*args)
    leaves = jax.tree.leaves(args)
    if _leaks(traced, len(leaves)):
        return jax.jit(function)(*args)  # raises the error of jax
    results, structure = traced.jaxpr.jaxpr.outvars, jax.tree.structure(traced.out_info)
    filled = {
        equation.outvars[0]: equation.invars[0].val
        for equation in traced.jaxpr.jaxpr.eqns
        if equation.primitive.name == "broadcast_in_dim" and _is_number(equation.invars[0])
    }
    known = [_is_plain(one.aval) and (isinstance(one, Literal) or one in filled) for one in results]
    run = jaxpr_as_fun(traced.jaxpr)

    def unknown(*leaves: PyTree) -> list[PyTree]:
        return [value for value, told in zip(run(*leaves), known, strict=True) if not told]

    rest = iter([] if all(known) else SharedJit(unknown)(*leaves))
    place = next((_whole(leaf) for leaf in leaves if isinstance(leaf, jax.Array) and leaf.committed), _of_the_mesh())
    values = [
        _full(one.aval, one.val if isinstance(one, Literal) else filled[one], place) if told else next(rest)
        for one, told in zip(results, known, strict=True)
    ]
    return jax.tree.unflatten(structure, values)


def _is_number(operand: object) -> bool:
    return isinstance(operand, Literal) and not np.ndim(operand.val)


def _is_plain(aval: Any) -> bool:
    """Returns whether numpy can create such an array. Results with a weak type would lose it."""
    return isinstance(aval.dtype, np.dtype) and not aval.weak_type and aval.size * aval.dtype.itemsize <= _MOST_WRITTEN


def _whole(array: jax.Array) -> Sharding:
    """Returns the place of results of `jax.jit` that do not depend on an array: on its devices, not in host memory."""
    if isinstance(array.sharding, NamedSharding):
        return NamedSharding(array.sharding.mesh, PartitionSpec())
    return _of_the_mesh() or SingleDeviceSharding(*array.devices())


def _mesh() -> Mesh | None:
    """Returns the current mesh with its devices; None without a mesh, and inside a trace, which does not know the
    devices.
    """
    try:
        mesh = jax.sharding.get_mesh()
    except ValueError:
        return None
    return None if mesh.empty else mesh


def _of_the_mesh() -> Sharding | None:
    mesh = _mesh()
    return None if mesh is None else NamedSharding(mesh, PartitionSpec())


def _full(aval: Any, value: object, place: Sharding | None) -> jax.Array:
    return jax.device_put(np.full(aval.shape, value, aval.dtype), place)


def _leaks(traced: PyTree, arguments: int) -> bool:
    """Returns whether a function uses a value of another trace. jax makes it a further input of the program."""
    return len(traced.jaxpr.jaxpr.invars) != arguments


def forget_shared() -> None:
    """Removes all programs, for tests that count compilations."""
    _known.clear()
