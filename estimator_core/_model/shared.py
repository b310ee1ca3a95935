"""Compiled programs that all Estimators of a process share: what was compiled once is not lowered and loaded again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.extend.core import Literal, jaxpr_as_fun

from estimator_core._model.program_key import program_key
from estimator_core._types import PyTree

#: Programs that are kept; the one that was asked for longest ago goes first.
_MOST = 64
#: Calls with other shapes after which a program leaves them, and its own, to `jax.jit`.
_PATIENCE = 16

_known: OrderedDict[object, PyTree] = OrderedDict()
_lock = threading.Lock()


class SharedJit:
    """`jax.jit(function)`, whose first program is that of another function where both trace to the same one.

    The trials of a sweep, the runs of a population and the folds of a cross-validation have an Estimator each. Their
    functions differ, their programs do not. Tracing is what tells; it is done for each function.

    Args:
        function: takes arrays by position.
        options: of `jax.jit`.

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
            except (TypeError, ValueError):  # other shapes or devices: raised before anything runs
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
        """What to call in a long loop, without running it: `jax.jit` itself, the quickest, where no other function with
        this program has been compiled before; then others may share it.
        """
        if not self._asked:
            self._asked = True
            self.compiled = self._found(args, alone=True)
        return self._jit if self.compiled is None else self

    def trace(self, *args: PyTree) -> PyTree:
        """As that of `jax.jit`."""
        return self._jit.trace(*args)

    def lower(self, *args: PyTree) -> PyTree:
        """As that of `jax.jit`."""
        return self._jit.lower(*args)

    def _found(self, args: tuple[PyTree, ...], *, alone: bool = False) -> PyTree:
        """The compiled program for these arguments; None: it is not shared, or the first of its kind is `alone`."""
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
        given = config.jax_default_device, config.jax_enable_x64, self._options
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
    """Keeps a program, or the note that it has been asked for, as the newest."""
    _known[key] = compiled
    _known.move_to_end(key)
    while len(_known) > _MOST:
        _known.popitem(last=False)


def computed_once(function: Callable[..., PyTree], *args: PyTree) -> PyTree:
    """`jax.jit(function)(*args)` for a function that is called once. Its program does not hold results that are numbers
    known already, so functions that differ in these alone share it.

    Example:
        >>> rate = 0.1
        >>> computed_once(lambda x: {"rate": jnp.float32(rate), "slots": 0 * x}, jnp.ones(2))["rate"]
        Array(0.1, dtype=float32)
    """
    traced = jax.jit(function).trace(*args)
    if _leaks(traced, len(jax.tree.leaves(args))):
        return jax.jit(function)(*args)  # raises what jax says of it
    results, structure = traced.jaxpr.jaxpr.outvars, jax.tree.structure(traced.out_info)
    known = [isinstance(one, Literal) and not getattr(one.aval, "weak_type", False) for one in results]
    run = jaxpr_as_fun(traced.jaxpr)

    def unknown(*leaves: PyTree) -> list[PyTree]:
        return [value for value, told in zip(run(*leaves), known, strict=True) if not told]

    rest = iter([] if all(known) else SharedJit(unknown)(*jax.tree.leaves(args)))
    values = [
        jnp.array(one.val, one.aval.dtype) if told else next(rest) for one, told in zip(results, known, strict=True)
    ]
    return jax.tree.unflatten(structure, values)


def _leaks(traced: PyTree, arguments: int) -> bool:
    """Whether a function uses a value of another trace, which jax makes one more input of its program."""
    return len(traced.jaxpr.jaxpr.invars) != arguments


def forget_shared() -> None:
    """Compiles everything again, for tests that count."""
    _known.clear()
