"""The check whether an input can be opened again without a loss: opening must not consume anything that it reaches."""

from __future__ import annotations

import contextlib
import functools
import inspect
import queue
import random
import sys
import sysconfig
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

_MOST_OBJECTS = 2000
_MOST_ITEMS = 50
_CONTAINERS = (list, tuple, set, frozenset, Mapping)
_WAITING = (queue.Queue, queue.SimpleQueue, threading.Event, threading.Condition, threading.Thread)
_OF_OTHERS = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


@dataclass(frozen=True, kw_only=True)
class Reached:
    """The objects that an input_fn reaches, as far as Python shows them.

    Attributes:
        one_shot: the first object that a second opening would consume or wait for, such as "a generator in 'rows'".
            None: there is no such object.
        random: the sources of random numbers.
    """

    one_shot: str | None = None
    random: tuple[Any, ...] = ()


def reached(input_fn: Callable[..., Any]) -> Reached:
    """Finds iterators, queues and random numbers that an input_fn did not make itself.

    Args:
        input_fn: the function, method, partial or object, which is not called.

    Example:
        >>> import functools
        >>> rows = iter([1, 2, 3])
        >>> reached(functools.partial(map, float, rows)).one_shot
        "a list_iterator in 'input_fn'"
        >>> reached(functools.partial(map, float, [1, 2, 3])).one_shot
    """
    walk = _Walk()
    if isinstance(input_fn, type):  # a class whose objects are inputs
        for method in ("__init__", "__iter__", "__next__"):
            walk.look(input_fn.__name__, getattr(input_fn, method, None))
    walk.look("input_fn", input_fn)
    return Reached(one_shot=walk.one_shot, random=tuple(walk.random.values()))


@dataclass(kw_only=True)
class _Walk:
    """A search through objects. Each is visited once."""

    one_shot: str | None = None
    random: dict[int, Any] = field(default_factory=dict[int, Any])
    _seen: dict[int, Any] = field(default_factory=dict[int, Any])  # holds the visited objects, so that no id is reused

    def look(self, name: str, value: Any) -> None:
        """Visits a value and everything that it contains."""
        waiting: list[tuple[str, Any]] = [(name, value)]
        while waiting and self.one_shot is None and len(self._seen) < _MOST_OBJECTS:
            name, value = waiting.pop()
            if id(value) in self._seen or isinstance(value, (type, ModuleType, str, bytes, int, float, np.ndarray)):
                continue
            self._seen[id(value)] = value
            if isinstance(value, (random.Random, np.random.Generator, np.random.RandomState)) or _of_torch(value):
                self.random[id(value)] = value
            elif isinstance(value, (Iterator, *_WAITING)):
                self.one_shot = f"a {type(value).__name__} in {name!r}"
            else:
                waiting.extend(_held(name, value))


def _held(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """Yields the values of closures and of named globals, arguments, and attributes of a program's own classes."""
    if isinstance(value, FunctionType):
        own = inspect.unwrap(value)
        if own is not value:
            yield name, own
        yield from _of_function(value)
    elif isinstance(value, MethodType):
        yield from ((name, value.__func__), (name, value.__self__))
    elif isinstance(value, functools.partial):
        given = cast("functools.partial[Any]", value)
        yield from ((name, each) for each in (given.func, *given.args))
        yield from given.keywords.items()
    elif isinstance(value, _CONTAINERS):
        items = cast(Any, value.values() if isinstance(value, Mapping) else value)
        yield from ((name, each) for each, _ in zip(items, range(_MOST_ITEMS), strict=False))
    elif not _installed(type(value)):
        for method in ("__call__", "__iter__"):
            if inspect.isfunction(function := getattr(type(value), method, None)):
                yield name, function
        yield from getattr(value, "__dict__", {}).items()
    elif _of_torch(generator := getattr(value, "generator", None)):
        yield name, generator


def _of_function(function: FunctionType) -> Iterable[tuple[str, Any]]:
    if _installed(function):
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # a cell that is still empty
            yield name, cell.cell_contents
    for each in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield function.__name__, each
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _names(code: CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _installed(thing: Any) -> bool:
    """Returns whether a class or function belongs to an installed package or to Python, and not to the program."""
    module = getattr(thing, "__module__", None) or ""
    if module.partition(".")[0].startswith("estimator_") or module == "builtins":
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and file.startswith(_OF_OTHERS)


def _of_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Generator)


@contextlib.contextmanager
def random_numbers_kept(own: Iterable[Any] = ()) -> Generator[None]:
    """Restores the sources of random numbers after the block: those of all programs, and the given ones.

    Args:
        own: the sources of a program: objects of `random`, NumPy or PyTorch.

    Example:
        >>> source = random.Random(1)
        >>> with random_numbers_kept([source]):
        ...     first = source.random()
        >>> first == source.random()
        True
    """
    torch = sys.modules.get("torch")
    back: list[Callable[[], Any]] = [functools.partial(random.setstate, random.getstate())]
    back.append(functools.partial(np.random.set_state, np.random.get_state()))
    if torch is not None:
        back.append(functools.partial(torch.set_rng_state, torch.get_rng_state()))
    back.extend(_state_of(each) for each in own)
    try:
        yield
    finally:
        for restore in back:
            restore()


def _state_of(source: Any) -> Callable[[], Any]:
    if isinstance(source, random.Random):
        return functools.partial(source.setstate, source.getstate())
    if isinstance(source, np.random.Generator):
        return functools.partial(setattr, source.bit_generator, "state", source.bit_generator.state)
    return functools.partial(source.set_state, source.get_state())  # of the older kind of NumPy, and of PyTorch
