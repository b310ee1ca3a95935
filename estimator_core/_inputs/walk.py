"""A walk over the batches of an input of any kind, from its start or from a saved position."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import sys
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sized
from dataclasses import replace
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from estimator_core._inputs.contract import Batch, InputOptions, InputPosition, difference, fingerprint_of
from estimator_core._inputs.input_fn import Wrapped
from estimator_core._inputs.leaves import device_dtype, is_text_list
from estimator_core._inputs.normalise import split_element
from estimator_core._types import PyTree
from estimator_core.errors import InputError

#: `tf.data.INFINITE_CARDINALITY`.
_INFINITE = -1
#: Iterators that a walk has drawn from. If they are returned again, they continue at their current position.
_DRAWN: weakref.WeakSet[Any] = weakref.WeakSet()
#: The reader of an iterator that an iterable created, until this generator ends or is closed.
_READERS: weakref.WeakKeyDictionary[object, weakref.ref[Generator[Batch]]] = weakref.WeakKeyDictionary()


class Walk(NamedTuple):
    """An iterator over batches, and the means to position it.

    Attributes:
        elements: the iterator.
        fingerprint: identifies the input. It may load data, so it is not called before the first draw.
        get_state, set_state: the functions that read and set the position of the iterator itself (the contract of grain
            and of this framework). None without such functions.
        at_start: whether nothing has been drawn from it, so that a position can be reached by drawing and dropping.
        options: the options that the input declares.
        check_first: a function that refuses the first element after all conversions, if devices cannot represent its
            numbers.
        global_rows: a function that returns the number of rows of the last batch over all processes, if the iterator
            yields rows of a global batch; None if its batches belong to this process alone.
    """

    elements: Iterator[PyTree]
    fingerprint: Callable[[], str]
    get_state: Callable[[], Any] | None
    set_state: Callable[[Any], None] | None
    at_start: bool
    options: InputOptions
    check_first: Callable[[PyTree], None]
    global_rows: Callable[[], int] | None = None


def walk(source: Any, reader: Generator[Batch]) -> Walk:
    """Starts a walk over an input from `make_input`, at the first draw. Workers of a loader start here.

    Raises:
        InputError: another reader is reading the iterator, which now begins again.
    """
    if isinstance(source, Wrapped):
        inner = walk(source.source, reader)
        elements = source.converted(inner.elements)
        return inner._replace(elements=elements, options=_merged(inner.options, source.options))
    elements: Any
    options = getattr(source, "input_options", None)
    if hasattr(source, "as_numpy_iterator"):  # the memory of an element belongs to a tensor that is never rewritten
        elements, known = source.as_numpy_iterator(), InputOptions(fresh_arrays=True)
    else:
        elements, known = iter(source), InputOptions()
    if elements is not source:
        _check_not_read(source, elements, reader)
    get_state: Any = getattr(elements, "get_state", None)
    set_state: Any = getattr(elements, "set_state", None)
    positioned = callable(get_state) and callable(set_state)
    if positioned:  # grain reads ahead in threads and processes, so it cannot refill yielded arrays
        known = InputOptions(fresh_arrays=True)
    known = replace(known, endless=_says_endless(source))
    drawn, check_first = _watched(elements)
    return Walk(
        elements=drawn,
        fingerprint=lambda: _fingerprint(source, elements),
        get_state=get_state if positioned else None,
        set_state=cast(Callable[[Any], None], set_state) if positioned else None,
        at_start=_at_start(source, elements),
        options=options if isinstance(options, InputOptions) else known,
        check_first=check_first,
        global_rows=None if getattr(elements, "global_rows", None) is None else lambda: elements.global_rows,
    )


def _watched(elements: Any) -> tuple[Iterator[PyTree], Callable[[PyTree], None]]:
    """Returns the iterator, and a function that refuses an array of its data that is too wide for devices, in any row.

    The function checks whether the first element still has the array that the iterator yielded. If so, no transform has
    consumed the array.
    """
    found = getattr(elements, "too_wide", None)
    if not isinstance(found, dict) or not found:
        return elements, lambda first: None
    too_wide = cast("Mapping[tuple[int, str], str]", found)
    wide: list[tuple[np.ndarray, str]] = []

    def watched() -> Iterator[PyTree]:
        for element in elements:
            for (part, name), told in too_wide.items() if not wide else ():
                tree = split_element(element)[part]
                wide.append((tree[name] if name else tree, told))
            yield element

    def check(first: PyTree) -> None:
        leaves = jax.tree.leaves(first)
        for array, told in wide:
            if device_dtype(array.dtype) != array.dtype and any(leaf is array for leaf in leaves):
                raise InputError(told)

    return watched(), check


def _check_not_read(source: object, elements: object, reader: Generator[Batch]) -> None:
    """Refuses a loader with a single iterator for all calls. Its readers would find its end or wrong batches."""
    try:
        other = _READERS.get(elements, lambda: None)()
        _READERS[elements] = weakref.ref(reader)
    except TypeError:  # iterators written in C are always new
        return
    if other not in (None, reader) and inspect.getgeneratorstate(other) != inspect.GEN_CLOSED:
        raise InputError(
            f"A {type(source).__module__}.{type(source).__qualname__} has one iterator, which another call is still "
            "reading, and this call would restart it. Use a loader for each call, for example one for training and one "
            "for evaluation (a torch DataLoader: or set persistent_workers=False)."
        )


def _merged(known: InputOptions, declared: InputOptions | None) -> InputOptions:
    if declared is None:
        return known
    return replace(
        declared,
        fresh_arrays=declared.fresh_arrays or known.fresh_arrays,
        batch_size=declared.batch_size or known.batch_size,
        endless=declared.endless or known.endless,
        varying_shapes=declared.varying_shapes or known.varying_shapes,
        whole=declared.whole or known.whole,
    )


def _says_endless(source: object) -> bool:
    """Returns whether an input reports that it never ends: tf.data by its cardinality, a repeated input of grain by its
    length.
    """
    with contextlib.suppress(Exception):  # an error of this query must not end a working input
        if callable(cardinality := getattr(source, "cardinality", None)):
            return int(cast(Any, cardinality())) == _INFINITE
        return isinstance(source, Sized) and len(source) >= sys.maxsize
    return False


def _at_start(source: object, elements: object) -> bool:
    if elements is not source:
        return True
    if inspect.isgenerator(elements):
        return inspect.getgeneratorstate(elements) == inspect.GEN_CREATED
    try:
        drawn = elements in _DRAWN
        _DRAWN.add(elements)
    except TypeError:  # map, zip and similar iterators cannot be remembered
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
        with contextlib.suppress(TypeError):  # an iterable data set may have an unknown length
            facts["len"] = len(source)
    if isinstance(batch_size := getattr(source, "batch_size", None), int):
        facts["batch_size"] = batch_size
    return fingerprint_of(kind, **facts)


_END = object()


class TakenUp(NamedTuple):
    """A walk at its saved position.

    Attributes:
        walk: the walk to read.
        elements: the remaining elements to draw.
        examples, batches: the numbers that were read before.
        note: a log line; None if there was no position.
        ended: whether the input has ended exactly at the position, so that the walk begins again.
    """

    walk: Walk
    elements: Iterator[PyTree]
    examples: int
    batches: int
    note: str | None
    ended: bool = False


def take_up(
    position: InputPosition | None, open_walk: Callable[[], Walk], size_of: Callable[[Walk, PyTree], int]
) -> TakenUp:
    """Opens a walk at `position`.

    Args:
        position: the position at which to continue. None: the start.
        open_walk: a function that opens the input. It is called again if the first walk is already at its end.
        size_of: a function that counts the examples of one element.
    """
    opened = open_walk()
    if position is None or (position.examples == 0 and not position.exhausted):
        return TakenUp(opened, opened.elements, 0, 0, None)
    if position.exhausted:
        return _again(opened, f"it had ended after {position.examples} examples", ended=True)
    fingerprint = opened.fingerprint()
    if fingerprint != position.fingerprint:
        return _again(opened, difference(position.fingerprint, fingerprint))
    if opened.set_state is not None:
        return _restored(position, opened, open_walk)
    if not opened.at_start:
        note = (
            f"Input continues where its iterator is (the checkpoint has {position.examples} examples): an iterator "
            "in use cannot be moved. Return an iterable or a generator function from input_fn to make resuming exact."
        )
        return TakenUp(opened, opened.elements, position.examples, position.batches, note)
    if not opened.options.replay:
        return _again(opened, f"it has no position and replay is switched off; {position.examples} examples repeat")
    return _replayed(position, opened, open_walk, size_of)


def _again(opened: Walk, why: str, *, ended: bool = False) -> TakenUp:
    return TakenUp(opened, opened.elements, 0, 0, f"Input starts again: {why}.", ended)


def _restored(position: InputPosition, opened: Walk, open_walk: Callable[[], Walk]) -> TakenUp:
    assert opened.set_state is not None
    try:
        opened.set_state(position.source_state)
    except Exception as error:  # whatever a foreign iterator raises on a state that is not its own
        return _again(open_walk(), f"its iterator refused the saved state ({error!r})")
    note = f"Input continues after {position.examples} examples ({position.batches} batches)."
    return _continued(position, opened, open_walk, note)


def _replayed(
    position: InputPosition, opened: Walk, open_walk: Callable[[], Walk], size_of: Callable[[Walk, PyTree], int]
) -> TakenUp:
    seen = drawn = size = 0
    element: PyTree = _END
    while seen < position.examples:
        element = next(opened.elements, _END)
        if element is _END:
            return _again(open_walk(), f"it ends after {seen} examples and the checkpoint has {position.examples}")
        size = size_of(opened, element)
        seen += size
        drawn += 1
    if seen > position.examples:  # batches had other sizes before: deliver the rest of this one
        rest = _from_row(element, size - (seen - position.examples))
        opened = opened._replace(elements=itertools.chain([rest], opened.elements))
    note = (
        f"Input continues after {position.examples} examples: it has no position of its own, so {drawn} batches were "
        "drawn and dropped (ec.inputs.from_iterable(..., replay=False) starts again instead)."
    )
    return _continued(position, opened, open_walk, note)


def _continued(position: InputPosition, opened: Walk, open_walk: Callable[[], Walk], note: str) -> TakenUp:
    """Continues after the position, or starts the input again if it has no further elements."""
    first = next(opened.elements, _END)
    if first is _END:
        return _again(open_walk(), f"it ends after {position.examples} examples", ended=True)
    return TakenUp(opened, itertools.chain([first], opened.elements), position.examples, position.batches, note)


def _from_row(element: PyTree, row: int) -> PyTree:
    def rest(leaf: PyTree) -> PyTree:
        return leaf[row:] if getattr(leaf, "ndim", 0) or is_text_list(leaf) else leaf

    return jax.tree.map(rest, element, is_leaf=is_text_list)
