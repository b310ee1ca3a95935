"""Factories of modules: the arguments that they accept, and the place where they run."""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax

from estimator_core.errors import ArgumentTypeError

Randomness = Literal["rngs", "key", None]


@dataclass(frozen=True, kw_only=True)
class Factory:
    """A class or function that makes a module.

    Args:
        call: the class or function.
        randomness: the name of the argument that receives random keys. None without one.
    """

    call: Callable[..., Any]
    randomness: Randomness

    @property
    def in_trace(self) -> bool:
        """Whether the factory runs inside the trace.

        A factory without random keys returns values, so it runs on the host.
        """
        return self.randomness is not None

    @property
    def description(self) -> str:
        """The name of the factory, for messages."""
        return str(getattr(self.call, "__qualname__", self.call))

    def make(self, key: jax.Array) -> Any:
        """Makes the module from a random key."""
        if self.randomness is None:
            return self.call()
        if self.randomness == "key":
            return self.call(key=key)
        from flax import nnx

        # The backend decides where variables are placed. The annotations are kept and passed to it.
        with nnx.use_eager_sharding(False):
            return self.call(rngs=nnx.Rngs(key))

    def make_here(self) -> Any:
        """Makes the module for this trace. Its own values are replaced, so any key is valid."""
        if self.in_trace:
            return self.make(jax.random.key(0))
        # Keras draws seeds from Python's generator. The number of traces of model_fn must not affect what the user
        # draws from it.
        outside = random.getstate()
        try:
            with jax.ensure_compile_time_eval():
                return self.call()
        finally:
            random.setstate(outside)


def factory_of(thing: object) -> Factory | None:
    """Returns the factory in the argument of `ec.module`; None for a function of inputs or an object that is not
    callable.

    Raises:
        ArgumentTypeError: the argument is a class that requires other arguments, or a function that may be a factory or
            a function of inputs.

    Example:
        >>> factory_of(lambda rngs: None).randomness
        'rngs'
        >>> factory_of(lambda x: x) is None
        True
    """
    if not callable(thing):
        return None
    try:
        parameters = _parameters(thing)
    except (TypeError, ValueError):
        return None
    is_class = _class_of(thing)[0] is not None
    named = {name for name, one in parameters.items() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    takes: list[Randomness] = [name for name in ("rngs", "key") if name in named]
    needed = [
        name
        for name, one in parameters.items()
        if one.default is one.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        and name not in ("rngs", "key")
    ]
    any_inputs = any(one.kind is one.VAR_POSITIONAL for one in parameters.values())
    if is_class and needed:
        raise ArgumentTypeError(
            f"ec.module was given the class {getattr(thing, '__qualname__', thing)}, which needs the arguments "
            f"{', '.join(needed)}. Give a "
            "function that makes the module, such as lambda rngs: Network(hidden=10, rngs=rngs)."
        )
    if any_inputs and not is_class and not needed and not takes:
        raise ArgumentTypeError(
            f"ec.module was given {getattr(thing, '__qualname__', thing)}, whose arguments are *args: it may make "
            "a module or be one. Give lambda key: f(key=key), lambda rngs: f(rngs=rngs) or lambda: f() for a "
            "factory, and "
            "lambda x: f(x) for a function of inputs."
        )
    if not is_class and needed:
        return None
    if len(takes) > 1:
        raise ArgumentTypeError(
            "ec.module was given a factory that takes both rngs and key. Take rngs for Flax NNX, key for other "
            "libraries."
        )
    return Factory(call=thing, randomness=takes[0] if takes else None)


def _class_of(thing: Any) -> tuple[type | None, functools.partial[Any]]:
    """Returns the class of a factory, without bound arguments and wrappers, and the arguments bound to it."""
    bound = thing if isinstance(thing, functools.partial) else functools.partial(thing)
    inner = inspect.unwrap(bound.func)  # without the wrappers of functools.wraps
    return (inner if inspect.isclass(inner) else None), bound


def _parameters(thing: Any) -> Mapping[str, inspect.Parameter]:
    class_, bound = _class_of(thing)
    if class_ is None:
        return inspect.signature(thing).parameters
    # The signature of a class may be that of its metaclass, which does not list these parameters.
    return inspect.signature(functools.partial(class_.__init__, None, *bound.args, **bound.keywords)).parameters
