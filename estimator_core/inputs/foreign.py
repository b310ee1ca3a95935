"""Whatever an input_fn returns, turned into a walk over its batches."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from estimator_core.errors import InputError
from estimator_core.inputs.calling import call_input_fn
from estimator_core.inputs.options import InputOptions
from estimator_core.inputs.position import fingerprint_of
from estimator_core.inputs.wrapped import Wrapped

#: Iterators that a walk has drawn from: given again, they continue where they stand.
_DRAWN: weakref.WeakSet[Any] = weakref.WeakSet()

_ARRAYS_HELP = (
    "An input_fn returns an iterable of batches. For arrays in memory use "
    "ec.inputs.numpy_input_fn(x, y, batch_size=..., shuffle=...)."
)


class Walk(NamedTuple):
    """An iterator over batches, and how it is positioned.

    Attributes:
        elements: the iterator.
        fingerprint: says which input it is; may load data, so it is not called before the first draw.
        get_state, set_state: the iterator's own position (grain's contract, and ours); None where it has none.
        at_start: nothing has been drawn from it, so that a position can be reached by drawing and dropping.
        options: what it declares.
    """

    elements: Iterator[Any]
    fingerprint: Callable[[], str]
    get_state: Callable[[], Any] | None
    set_state: Callable[[Any], None] | None
    at_start: bool
    options: InputOptions


def resolve(result: Any, arguments: Mapping[str, Any]) -> Any:
    """What an input_fn returned, called while it is a function that makes an input; refused where it is no input.

    Raises:
        InputError: arrays, None, text or numbers.
    """
    for _ in range(4):
        if isinstance(result, Wrapped):
            return replace(result, source=resolve(result.source, arguments))
        if result is None or isinstance(result, (str, bytes, bool, int, float)):
            raise InputError(f"input_fn returned {result!r}. {_ARRAYS_HELP}")
        if _is_iterable(result):
            _refuse_arrays(result)
            return result
        if not callable(result):
            raise InputError(f"input_fn returned a {type(result).__qualname__}: it cannot be iterated. {_ARRAYS_HELP}")
        result = call_input_fn(result, arguments)
    raise InputError("input_fn returned a function that returns a function and so on. Return the input itself.")


def walk(source: Any) -> Walk:
    """Starts a walk over what `resolve` let through. Workers of a loader start here: called at the first draw."""
    if isinstance(source, Wrapped):
        inner = walk(source.source)
        elements = inner.elements if source.convert is None else map(source.convert, inner.elements)
        return inner._replace(elements=elements, options=_merged(inner.options, source.options))
    elements: Any
    options = getattr(source, "input_options", None)
    if hasattr(source, "as_numpy_iterator"):  # tf.data: an element's memory belongs to a tensor that nobody writes into
        elements, known = source.as_numpy_iterator(), InputOptions(fresh_arrays=True)
    else:
        elements, known = iter(source), InputOptions()
    get_state: Any = getattr(elements, "get_state", None)
    set_state: Any = getattr(elements, "set_state", None)
    positioned = callable(get_state) and callable(set_state)
    if positioned:  # grain reads ahead in threads and processes, so it cannot refill what it has handed out
        known = InputOptions(fresh_arrays=True)
    return Walk(
        elements=elements,
        fingerprint=lambda: _fingerprint(source, elements),
        get_state=get_state if positioned else None,
        set_state=cast(Callable[[Any], None], set_state) if positioned else None,
        at_start=_at_start(source, elements),
        options=options if isinstance(options, InputOptions) else known,
    )


def _merged(known: InputOptions, declared: InputOptions | None) -> InputOptions:
    if declared is None:
        return known
    return replace(
        declared,
        fresh_arrays=declared.fresh_arrays or known.fresh_arrays,
        batch_size=declared.batch_size or known.batch_size,
    )


def _is_iterable(result: Any) -> bool:
    kinds = ("__iter__", "__next__", "as_numpy_iterator", "__getitem__")
    return any(hasattr(result, name) for name in kinds)


def _refuse_arrays(result: Any) -> None:
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


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (hasattr(value, "__array__") and not hasattr(value, "__next__"))


def _at_start(source: Any, elements: Any) -> bool:
    if elements is not source:
        return True
    if inspect.isgenerator(elements):
        return inspect.getgeneratorstate(elements) == inspect.GEN_CREATED
    try:
        drawn = elements in _DRAWN
        _DRAWN.add(elements)
    except TypeError:  # map, zip and their like cannot be remembered
        return False
    return not drawn


def _fingerprint(source: Any, elements: Any) -> str:
    own = getattr(elements, "fingerprint", None)
    if isinstance(own, str):
        return own
    kind = f"{type(source).__module__}.{type(source).__qualname__}"
    facts: dict[str, object] = {}
    if inspect.isgenerator(source):
        facts["function"] = source.__qualname__
    elif hasattr(source, "element_spec"):
        facts["element_spec"] = source.element_spec
    elif isinstance(source, Sized):
        with contextlib.suppress(TypeError):  # an iterable data set of unknown length
            facts["len"] = len(source)
    if isinstance(batch_size := getattr(source, "batch_size", None), int):
        facts["batch_size"] = batch_size
    return fingerprint_of(kind, **facts)
