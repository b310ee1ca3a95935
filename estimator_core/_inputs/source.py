"""`open_input`: opens an input_fn as a checked stream of batches with a position, padded and split among processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import jax
import numpy as np

from estimator_core._inputs.contract import Batch, InputContext, InputOptions, InputPosition
from estimator_core._inputs.input_fn import InputFn, check_input_fn, make_input
from estimator_core._inputs.normalise import NO_HOST, Normaliser, Parts, split_element
from estimator_core._inputs.walk import TakenUp, Walk, take_up, walk
from estimator_core._types import Params, PyTree
from estimator_core.errors import InputError
from estimator_core.modes import ModeKeys

#: A feature with this name marks the real rows of a batch that the input padded itself (a convention of BERT).
IS_REAL_EXAMPLE = "is_real_example"


class Mask(NamedTuple):
    """A batch after padding.

    Attributes:
        parts: the batch, padded.
        weights: float32[rows], 1 for an example and 0 for padding; None if the input never pads.
        size: the number of examples, without padding.
    """

    parts: Parts
    weights: np.ndarray | None
    size: int


def unpadded(parts: Parts) -> Mask:
    """Returns the mask of an input that never pads."""
    return Mask(parts, None, parts.rows)


def masking(options: InputOptions, first: Parts) -> Callable[[Parts], Mask]:
    """Returns the function that pads and masks the batches of an input, chosen by its first batch."""
    if isinstance(first.features, Mapping) and IS_REAL_EXAMPLE in first.features:
        return _declared
    if options.ragged == "pad":
        rows = options.batch_size or first.rows
        ones = np.ones(rows, np.float32)
        return lambda parts: Mask(parts, ones, rows) if parts.rows == rows else _padded(parts, rows)
    return unpadded


def _declared(parts: Parts) -> Mask:
    real = parts.features[IS_REAL_EXAMPLE]
    weights = np.asarray(real, np.float32).reshape(-1)
    if weights.shape != (parts.rows,) or not np.isin(weights, (0.0, 1.0)).all():
        raise InputError(
            f"feature '{IS_REAL_EXAMPLE}' must hold a 0 or 1 for each of the batch's {parts.rows} examples, given: "
            f"{real!s:.120}."
        )
    return Mask(parts, weights, int(weights.sum()))


def _padded(parts: Parts, rows: int) -> Mask:
    if parts.rows > rows:
        raise InputError(
            f'A batch has {parts.rows} examples, more than the {rows} that ragged="pad" fills up to. Give the largest '
            "batch size as batch_size."
        )
    missing = rows - parts.rows

    def fill(array: np.ndarray) -> np.ndarray:
        # Copies of the last example, because any value of a real example is safe for logarithms and divisions.
        return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) if array.ndim else array

    features, labels = jax.tree.map(fill, (parts.features, parts.labels))
    host = {name: fill(array) for name, array in parts.host.items()}
    weights = np.zeros(rows, np.float32)
    weights[: parts.rows] = 1.0
    return Mask(Parts(features, labels, host, rows), weights, parts.rows)


class Dealt(NamedTuple):
    """The rows of this process in a global batch.

    Attributes:
        mask: the rows of this process. `size` counts the examples of all processes.
        total: the number of rows of the global batch.
    """

    mask: Mask
    total: int


Deal: TypeAlias = Callable[[Parts, Callable[[Parts], Mask]], Dealt]


def dealing(context: InputContext, opened: Walk) -> tuple[Walk, Deal | None]:
    """Returns the walk of one of several processes, and the function that selects its rows from each batch.

    The function takes a batch and a masking function. It pads a whole batch as one process would pad it, and then
    selects this process's rows. It is None if the input divided itself. The position then is valid only for this
    process and this division.
    """
    drawn = opened.global_rows
    if drawn is None and not opened.options.whole:
        process = f"process={context.input_pipeline_id}/{context.num_input_pipelines}"
        return opened._replace(fingerprint=lambda: f"{opened.fingerprint()}; {process}"), None

    def deal(parts: Parts, masked: Callable[[Parts], Mask]) -> Dealt:
        total = parts.rows if drawn is None else drawn()
        if parts.rows < total:
            weights = None if masked is unpadded else np.ones(parts.rows, np.float32)
            return Dealt(Mask(parts, weights, total), total)
        whole = masked(parts)
        return Dealt(_own_rows(whole, context), whole.parts.rows)

    return opened, deal


def _own_rows(whole: Mask, context: InputContext) -> Mask:
    rows = context.rows(whole.parts.rows)
    if len(rows) == whole.parts.rows:
        return whole

    def own(array: np.ndarray) -> np.ndarray:
        return array[rows] if array.ndim else array

    (features, labels, host, _), weights, size = whole
    features, labels, weights = jax.tree.map(own, (features, labels, weights))
    return Mask(Parts(features, labels, {name: own(value) for name, value in host.items()}, len(rows)), weights, size)


_new = tuple.__new__  # takes half the time of calling the class; both are made for every step


def open_input(
    input_fn: InputFn,
    *,
    mode: str,
    params: Params = None,
    config: object = None,
    input_context: InputContext | None = None,
    position: InputPosition | None = None,
) -> BatchSource:
    """Calls `input_fn` and opens the result. Nothing is drawn before the first `next`.

    Args:
        input_fn: a function that accepts any of `mode, params, config, input_context`, by name.
        mode: one of `ModeKeys`. In PREDICT, labels are dropped.
        params: the params that are passed to input_fn.
        config: the RunConfig that is passed to input_fn.
        input_context: the shard of this process. Default: all data.
        position: the position at which to continue. It is used at the first draw, because the input may not be ready
            earlier. `restored` then reports the result.

    Raises:
        ArgumentTypeError: input_fn is not callable.
        InputError: the arguments or the result of input_fn break the contract.

    Example:
        >>> import numpy as np
        >>> source = open_input(lambda: [({"x": np.ones((2, 1))}, np.zeros(2))], mode="eval")
        >>> [batch.size for batch in source]
        [2]
        >>> source.close()
    """
    check_input_fn(input_fn)
    context = input_context or InputContext()
    arguments = {"mode": mode, "params": params, "config": config, "input_context": context}

    def make() -> object:
        return make_input(input_fn, arguments)

    return BatchSource(make, position=position, with_labels=mode != ModeKeys.PREDICT, context=context)


class BatchSource(Iterator[Batch]):
    """An iterator over the checked batches of an input, each a `Batch`.

    Attributes:
        restored: a log line about how the given position was used, or None; set by the first draw.
        position: the position after the last batch; `exhausted` after the input has ended. None before the first draw.
        ended: whether the input ended exactly at the given position and started again. Set by the first draw.
        continues_at: the given position. None: the start of the input.
        endless: whether the input declares that it never ends. Set by the first draw.
        fresh_arrays: whether the input never writes again into the arrays of a batch. Arrays of other inputs are
            copied.
    """

    fresh_arrays: bool = True

    def __init__(
        self,
        make: Callable[[], object],
        *,
        position: InputPosition | None,
        with_labels: bool,
        context: InputContext,
    ) -> None:
        self._make = make
        self._source = make()
        self.continues_at = position
        self._with_labels = with_labels
        self._context = context
        self._normalise = Normaliser(fresh_arrays=True)  # replaced by the Normaliser of the input when the input opens
        self._deal: Deal | None = None  # selects this process's rows, after the input has opened
        self._mask: Callable[[Parts], Mask] | None = None  # chosen by the very first batch, which may be a replayed one
        self._batches = self._draw()
        self.restored: str | None = None
        self.endless = self.ended = False
        self.position: InputPosition | None = None

    def __iter__(self) -> Iterator[Batch]:
        return self._batches

    def __next__(self) -> Batch:
        return next(self._batches)

    def stay_ended(self) -> None:
        """Records that this part of an input has no more batches, because it has ended before the other parts.

        The caller draws no more batches.
        """
        assert self.continues_at is not None
        self.ended = False
        self.restored = (
            f"Input continues after {self.continues_at.examples} examples: the part of this process has ended, but "
            "that of another process has not."
        )

    def close(self) -> None:
        """Releases the input. An iterator that input_fn returned stays open, since input_fn may return it again."""
        self._batches.close()
        self._source = None

    def _draw(self) -> Generator[Batch]:
        """Yields all batches. It is a generator, since a method call per batch would double the cost."""
        taken = take_up(self.continues_at, self._open_walk, self._size_of)
        self._source = None
        fingerprint, get_state = taken.walk.fingerprint(), taken.walk.get_state
        examples, batches, self.restored = taken.examples, taken.batches, taken.note
        self.ended = taken.ended
        mask, elements = self._look_at_first(taken)
        normalise, masks, state, total = self._normalise, mask is not unpadded, None, None
        deal = self._deal
        for element in elements:
            quick, weights = normalise.quick, None
            pair = None if quick is None or masks or deal is not None else quick(element)
            if pair is not None:
                features, labels = pair
                host, size = NO_HOST, normalise.rows
            else:
                features, labels, host, size = parts = normalise(element)
                if deal is not None:
                    ((features, labels, host, _), weights, size), total = deal(parts, mask)
                elif masks:
                    (features, labels, host, _), weights, size = mask(parts)
            examples += size
            batches += 1
            if get_state is not None:
                state = get_state()
            self.position = position = _new(InputPosition, (fingerprint, examples, batches, False, state))
            yield _new(Batch, (features, labels, host, size, position, weights, total))
        last = self.position or InputPosition(fingerprint, examples, batches)
        self.position = last._replace(exhausted=True)

    def _open_walk(self) -> Walk:
        source = self._make() if self._source is None else self._source
        self._source = None
        opened, self._mask = walk(source, self._batches), None
        if self._context.num_input_pipelines > 1:
            opened, self._deal = dealing(self._context, opened)
        self.endless = opened.options.endless
        self._normalise = Normaliser(
            fresh_arrays=opened.options.fresh_arrays,
            with_labels=self._with_labels,
            varying_shapes=opened.options.varying_shapes,
        )
        return opened

    def _size_of(self, opened: Walk, element: PyTree) -> int:
        parts = self._normalise(element)
        if self._mask is None:
            self._mask = masking(opened.options, parts)
        return self._mask(parts).size

    def _look_at_first(self, taken: TakenUp) -> tuple[Callable[[Parts], Mask], Iterator[PyTree]]:
        """Chooses the mask from the first batch, and puts that batch back."""
        for first in taken.elements:
            taken.walk.check_first(first if self._with_labels else split_element(first)[0])
            mask = self._mask or masking(taken.walk.options, self._normalise(first))
            return mask, itertools.chain([first], taken.elements)
        return unpadded, taken.elements
