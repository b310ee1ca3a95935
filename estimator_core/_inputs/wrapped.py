"""An input inside another: a source with a declaration or a conversion around it. `from_iterable` declares one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estimator_core._inputs.calling import ARGUMENTS, InputFn, check_input_fn, make_input
from estimator_core._inputs.context import InputContext
from estimator_core._inputs.normalise import split_element
from estimator_core._inputs.options import InputOptions, Ragged
from estimator_core._types import Params, PyTree
from estimator_core.errors import ArgumentTypeError
from estimator_core.hooks import SeesBatches


@dataclass(frozen=True, kw_only=True)
class Wrapped:
    """What the input_fn of a `WrappedInput` returns. `open_input` takes it apart again.

    Args:
        source: an iterable of batches.
        options: what is declared about it; None: nothing.
        convert: the function for every element; None: elements stay as they are.
        needed: whether `convert` is called; asked at the first draw.
    """

    source: Any
    options: InputOptions | None = None
    convert: Callable[[PyTree], PyTree] | None = None
    needed: Callable[[], bool] = lambda: True

    def __iter__(self) -> Iterator[PyTree]:
        return self.converted(iter(self.source))

    def converted(self, elements: Iterator[PyTree]) -> Iterator[PyTree]:
        """The elements of the source after `convert`."""
        return elements if self.convert is None or not self.needed() else map(self.convert, elements)


@dataclass(frozen=True, kw_only=True)
class WrappedInput:
    """An input_fn around another one: takes what an input_fn may take, and passes on what the inner one names.

    Args:
        input_fn: the inner one.
        options: see `Wrapped`.
        convert: see `Wrapped`.
        needed: see `Wrapped`.
        opened: gets what the inner one returned, and the mode; returns what is read instead, and its `convert`.
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
        """Calls the inner input_fn."""
        whole = self.options is not None and self.options.whole  # then it is not divided a second time
        context = InputContext() if whole or input_context is None else input_context
        arguments: Mapping[str, Any] = dict(zip(ARGUMENTS, (mode, params, config, context), strict=True))
        source = make_input(self.input_fn, arguments)
        convert = self.convert
        if self.opened is not None:
            source, convert = self.opened(source, mode)
        return Wrapped(source=source, options=self.options, convert=convert, needed=self.needed)


def shown(input_fn: InputFn, hooks: Sequence[object]) -> InputFn:
    """An input_fn whose elements hooks see as they are drawn; the input_fn itself if no hook does."""
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
    """An input_fn that reads `source` and declares how it behaves.

    Args:
        source: an input_fn, or an iterable of batches.
        fresh_arrays: True promises that it never writes again into an array it yielded; nothing is copied then.
        replay: True reaches a saved position by drawing and dropping batches if the source has no position of its
            own; False starts again.
        ragged: "exact" runs a short last batch at its true shape; "pad" fills it up with copies of its last example and
            marks the rows in `Batch.weights`.
        batch_size: rows to fill up to; None: as many as the first batch.
        whole: True promises that every process draws the same batches. With several processes these are the global
            batches, of which each process keeps its own rows, so the numbers are those of one process.

    Raises:
        ArgumentTypeError: the source can be neither called nor iterated.
        ArgumentError: `ragged` is unknown, or the batch size is below 1.
        InputError: an input_fn has arguments that cannot be filled.

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
