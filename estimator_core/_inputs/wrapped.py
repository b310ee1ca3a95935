"""An input inside another: a source with a declaration or a conversion put around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estimator_core._inputs.calling import ARGUMENTS, InputFn
from estimator_core._inputs.context import InputContext
from estimator_core._inputs.making import make_input
from estimator_core._inputs.normalise import split_element
from estimator_core._inputs.options import InputOptions
from estimator_core._types import Params, PyTree
from estimator_core.hooks import SeesBatches


@dataclass(frozen=True, kw_only=True)
class Wrapped:
    """What the input_fn of a `WrappedInput` returns; `open_input` takes it apart again.

    Args:
        source: an iterable of batches.
        options: what is declared of it; None: nothing.
        convert: applied to every element; None: nothing.
    """

    source: Any
    options: InputOptions | None = None
    convert: Callable[[PyTree], PyTree] | None = None

    def __iter__(self) -> Iterator[PyTree]:
        elements = iter(self.source)
        return elements if self.convert is None else map(self.convert, elements)


@dataclass(frozen=True, kw_only=True)
class WrappedInput:
    """An input_fn around another one: takes what an input_fn may take, and hands on what the inner one names.

    Args:
        input_fn: the inner one.
        options: see `Wrapped`.
        convert: see `Wrapped`.
        opened: gets what the inner one returned, and the mode; returns what is read in its place, and its `convert`.
    """

    input_fn: InputFn
    options: InputOptions | None = None
    convert: Callable[[PyTree], PyTree] | None = None
    opened: Callable[[Any, Any], tuple[Any, Callable[[PyTree], PyTree] | None]] | None = None

    def __call__(
        self, *, mode: Any = None, params: Params = None, config: Any = None, input_context: InputContext | None = None
    ) -> Wrapped:
        """Calls the inner input_fn."""
        whole = self.options is not None and self.options.whole  # then it is not divided a second time
        context = InputContext() if whole or input_context is None else input_context
        arguments: Mapping[str, Any] = dict(zip(ARGUMENTS, (mode, params, config, context), strict=True))
        source = make_input(self.input_fn, arguments)
        convert = self.convert
        if self.opened is not None:
            source, convert = self.opened(source, mode)
        return Wrapped(source=source, options=self.options, convert=convert)


def shown(input_fn: InputFn, hooks: Sequence[Any]) -> InputFn:
    """An input_fn whose elements hooks see as they are drawn; itself where no hook does."""
    see = [hook.see for hook in hooks if isinstance(hook, SeesBatches)]
    if not see:
        return input_fn

    def convert(element: PyTree) -> PyTree:
        for function in see:
            function(*split_element(element))
        return element

    return WrappedInput(input_fn=input_fn, convert=convert)
