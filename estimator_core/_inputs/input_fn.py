"""Calls an input_fn until it returns batches, and wraps inputs in other inputs.

Any other result is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_core import specs
from estimator_core._inputs.contract import InputContext, InputOptions, Ragged
from estimator_core._inputs.normalise import split_element
from estimator_core._types import Params, PyTree
from estimator_core.errors import ArgumentTypeError, InputError
from estimator_core.hooks import SeesBatches

#: A function that returns an input. It may take any of `ARGUMENTS`, by name.
InputFn = Callable[..., Any]

ARGUMENTS = ("mode", "params", "config", "input_context")

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def check_input_fn(input_fn: Any) -> None:
    """Refuses an argument that cannot be called as an input_fn, without calling it.

    Raises:
        ArgumentTypeError: `input_fn` is not callable.
        InputError: `input_fn` requires an argument that is not in `ARGUMENTS`.
    """
    specs.check_input_fn(input_fn)
    accepted_arguments(input_fn)


def call_input_fn(input_fn: InputFn, arguments: Mapping[str, object]) -> Any:
    """Calls `input_fn` with the `arguments` that it accepts by name. Its errors are raised unchanged.

    Example:
        >>> call_input_fn(lambda mode: mode, {"mode": "train", "params": {}})
        'train'
    """
    return input_fn(**{name: arguments[name] for name in accepted_arguments(input_fn) if name in arguments})


def accepted_arguments(input_fn: InputFn) -> list[str]:
    """Returns the names in `ARGUMENTS` that an input_fn accepts.

    Raises:
        InputError: `input_fn` requires an argument that is not in `ARGUMENTS`.
    """
    try:
        parameters = inspect.signature(input_fn).parameters.values()
    except (TypeError, ValueError):  # a callable written in C without a signature, so no argument can be passed by name
        return []
    unexpected = [
        p.name
        for p in parameters
        if p.kind not in _VARIADIC
        and p.default is p.empty
        and (p.name not in ARGUMENTS or p.kind is inspect.Parameter.POSITIONAL_ONLY)
    ]
    if unexpected:
        raise InputError(
            f"input_fn ({input_fn!r}) has following not expected args: {unexpected}. It may take any of "
            f"{', '.join(ARGUMENTS)}, by name; give other arguments a default or bind them with functools.partial."
        )
    return [p.name for p in parameters if p.kind in _BY_NAME and p.name in ARGUMENTS]


_ARRAYS_HELP = (
    "An input_fn returns an iterable of batches. For arrays in memory use "
    "ec.inputs.numpy_input_fn(x, y, batch_size=..., shuffle=...)."
)


def make_input(input_fn: InputFn, arguments: Mapping[str, object]) -> Any:
    """Calls `input_fn`. If the result is a function, calls that too, until an input is returned.

    Only the outermost function that accepts `input_context` receives the shard of the process, because its result is
    already sharded.

    Raises:
        InputError: the arguments of `input_fn` cannot be filled, or it returns arrays, None, text or numbers.

    Example:
        >>> make_input(lambda params: lambda: [params], {"params": 3})
        [3]
    """
    result: Any = input_fn
    for _ in range(5):
        accepted = accepted_arguments(result)
        result = result(**{name: arguments[name] for name in accepted if name in arguments})
        if "input_context" in accepted:
            arguments = {**arguments, "input_context": InputContext()}
        if result is None or isinstance(result, (str, bytes, bool, int, float)):
            raise InputError(f"input_fn returned {result!r}. {_ARRAYS_HELP}")
        if _is_iterable(result):
            _refuse_arrays(result)
            return result
        if not callable(result):
            raise InputError(f"input_fn returned a {type(result).__qualname__}: it cannot be iterated. {_ARRAYS_HELP}")
    raise InputError("input_fn returned a function that returns a function and so on. Return the input itself.")


def _is_iterable(result: object) -> bool:
    kinds = ("__iter__", "__next__", "as_numpy_iterator", "__getitem__")
    return any(hasattr(result, name) for name in kinds)


def _refuse_arrays(result: object) -> None:
    if isinstance(result, Mapping):
        raise InputError(f"input_fn returned a dict, not batches. {_ARRAYS_HELP}")
    if _is_array(result):
        raise InputError(
            f"input_fn returned a {type(result).__qualname__}, not batches. {_ARRAYS_HELP} For a DataFrame: "
            "ec.inputs.pandas_input_fn."
        )
    if isinstance(result, (tuple, list)):
        items: tuple[Any, ...] | list[Any] = result
        of_arrays = any(_is_array(item) for item in items)
        if isinstance(result, tuple) and (of_arrays or any(isinstance(item, Mapping) for item in items)):
            wrong = "" if len(items) == 2 else "input_fn should return (features, labels) as a len 2 tuple. "
            raise InputError(
                f"{wrong}input_fn returned a tuple of {len(items)} arrays or dicts: it would be read as "
                f"{len(items)} batches. {_ARRAYS_HELP} For one batch return a list of it: [(features, labels)]."
            )
        if of_arrays:
            raise InputError(
                f"input_fn returned a list of {len(items)} items with bare arrays among them: they could be batches or "
                f"features and labels. {_ARRAYS_HELP} For a list of batches give each as (features, labels) or a dict."
            )


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray) or (hasattr(value, "__array__") and not hasattr(value, "__next__"))


@dataclass(frozen=True, kw_only=True)
class Wrapped:
    """The result of the input_fn of a `WrappedInput`. `open_input` separates its parts again.

    Args:
        source: an iterable of batches.
        options: the declared options of the source. None: no declaration.
        convert: a function for every element. None: elements stay unchanged.
        needed: a function that decides at the first draw whether `convert` is called.
    """

    source: Any
    options: InputOptions | None = None
    convert: Callable[[PyTree], PyTree] | None = None
    needed: Callable[[], bool] = lambda: True

    def __iter__(self) -> Iterator[PyTree]:
        return self.converted(iter(self.source))

    def converted(self, elements: Iterator[PyTree]) -> Iterator[PyTree]:
        """Yields the elements of the source after `convert`."""
        return elements if self.convert is None or not self.needed() else map(self.convert, elements)


@dataclass(frozen=True, kw_only=True)
class WrappedInput:
    """An input_fn around an inner input_fn.

    It accepts all arguments of an input_fn and passes on those that the inner one accepts.

    Args:
        input_fn: the inner input_fn.
        options: see `Wrapped`.
        convert: see `Wrapped`.
        needed: see `Wrapped`.
        opened: a function of the inner result and the mode. It returns the iterable to read instead, and its `convert`.
    """

    input_fn: InputFn
    options: InputOptions | None = None
    convert: Callable[[PyTree], PyTree] | None = None
    needed: Callable[[], bool] = lambda: True
    opened: Callable[[Any, Any], tuple[Any, Callable[[PyTree], PyTree] | None]] | None = None

    def __call__(
        self,
        *,
        mode: object = None,
        params: Params = None,
        config: object = None,
        input_context: InputContext | None = None,
    ) -> Wrapped:
        """Calls the inner input_fn and wraps its result."""
        whole = self.options is not None and self.options.whole  # if so, it is not divided a second time
        context = InputContext() if whole or input_context is None else input_context
        arguments: Mapping[str, Any] = dict(zip(ARGUMENTS, (mode, params, config, context), strict=True))
        source = make_input(self.input_fn, arguments)
        convert = self.convert
        if self.opened is not None:
            source, convert = self.opened(source, mode)
        return Wrapped(source=source, options=self.options, convert=convert, needed=self.needed)


def shown(input_fn: InputFn, hooks: Sequence[object]) -> InputFn:
    """Returns an input_fn whose elements are shown to hooks as they are drawn; the input_fn itself if no hook sees
    batches.
    """
    see = [hook.see for hook in hooks if isinstance(hook, SeesBatches)]
    if not see:
        return input_fn

    def convert(element: PyTree) -> PyTree:
        for function in see:
            function(*split_element(element))
        return element

    return WrappedInput(input_fn=input_fn, convert=convert)


def from_iterable(
    source: object,
    *,
    fresh_arrays: bool = False,
    replay: bool = True,
    ragged: Ragged = "exact",
    batch_size: int | None = None,
    whole: bool = False,
) -> WrappedInput:
    """Returns an input_fn that reads `source` and declares its properties.

    Args:
        source: an input_fn, or an iterable of batches.
        fresh_arrays: True promises that the source never writes again into an array that it yielded, so arrays are not
            copied.
        replay: if the source cannot restore a position itself, True reaches a saved position by drawing and dropping
            batches, and False starts again.
        ragged: "exact" runs a short last batch at its own shape. "pad" fills it with copies of its last example and
            marks the rows in `Batch.weights`.
        batch_size: the number of rows of a padded batch. None: the number in the first batch.
        whole: True promises that every process draws the same batches. With several processes these are the global
            batches. Each process keeps its own rows, so the results are those of one process.

    Raises:
        ArgumentTypeError: the source is neither callable nor iterable.
        ArgumentError: `ragged` is unknown, or the batch size is below 1.
        InputError: an input_fn requires an unknown argument.

    Example:
        >>> import numpy as np
        >>> from estimator_core._inputs.source import open_input
        >>> batches = [{"x": np.zeros(4, np.float32)}, {"x": np.ones(1, np.float32)}]
        >>> source = open_input(from_iterable(batches, ragged="pad"), mode="eval")
        >>> [batch.weights.tolist() for batch in source]
        [[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]]
    """
    options = InputOptions(fresh_arrays=fresh_arrays, replay=replay, ragged=ragged, batch_size=batch_size, whole=whole)
    if callable(source):
        check_input_fn(source)
        return WrappedInput(input_fn=source, options=options)
    if not any(hasattr(source, name) for name in ("__iter__", "__getitem__", "as_numpy_iterator")):
        raise ArgumentTypeError(
            f"from_iterable needs an input_fn or an iterable of batches, given: {source!r}. Pass a generator function, "
            "a data set or a loader."
        )
    return WrappedInput(input_fn=lambda: source, options=options)
