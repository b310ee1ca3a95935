"""`open_input`: opens an input_fn as a checked stream of batches with a position."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

from estimator_core._inputs.batch import Batch
from estimator_core._inputs.calling import InputFn, check_input_fn, make_input
from estimator_core._inputs.context import InputContext
from estimator_core._inputs.foreign import Walk, walk
from estimator_core._inputs.normalise import NO_HOST, Normaliser, Parts
from estimator_core._inputs.padding import Mask, masking, unpadded
from estimator_core._inputs.position import InputPosition
from estimator_core._inputs.resume import TakenUp, take_up
from estimator_core._types import Params, PyTree
from estimator_core.modes import ModeKeys

if TYPE_CHECKING:
    from estimator_core._inputs.dealing import Deal

_new = tuple.__new__  # half the time of calling the class: both are made for every step


def open_input(
    input_fn: InputFn,
    *,
    mode: str,
    params: Params = None,
    config: object = None,
    input_context: InputContext | None = None,
    position: InputPosition | None = None,
) -> BatchSource:
    """Calls `input_fn` and opens what it returns. Nothing is drawn before the first `next`.

    Args:
        input_fn: takes any of `mode, params, config, input_context`, by name.
        mode: one of `ModeKeys`; in PREDICT labels are dropped.
        params: passed to input_fn.
        config: passed to input_fn.
        input_context: this process's shard; default: the only one.
        position: where to continue. It is used at the first draw, because the input may not be ready earlier;
            `restored` then says what was done.

    Raises:
        ArgumentTypeError: input_fn is not callable.
        InputError: its arguments or its result break the contract.

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
    """An iterator of `Batch`.

    Attributes:
        restored: None, or a line for the log that says how the given position was used; set by the first draw.
        position: the position after the last batch; `exhausted` once the input has ended. None before the first draw.
        ended: whether the input has ended exactly at the given position, so that it has started again; set by the first
            draw.
        endless: whether the input declares that it never ends; known after the first draw.
        fresh_arrays: True: a batch's arrays are never written again (arrays of other inputs are copied).
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
        self._wanted = position
        self._with_labels = with_labels
        self._context = context
        self._normalise = Normaliser(fresh_arrays=True)  # the input's own, once that is open
        self._deal: Deal | None = None  # selects this process's rows of the input, once that is open
        self._batches = self._draw()
        self.restored: str | None = None
        self.endless = self.ended = False
        self.position: InputPosition | None = None

    def __iter__(self) -> Iterator[Batch]:
        return self._batches

    def __next__(self) -> Batch:
        return next(self._batches)

    def close(self) -> None:
        """Releases the input. An iterator that input_fn returned is not closed: it may be returned again."""
        self._batches.close()
        self._source = None

    def _draw(self) -> Generator[Batch]:
        """Yields all batches. It is a generator, since a method call per batch would double the cost."""
        taken = take_up(self._wanted, self._open_walk, self._size_of)
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
        opened = walk(source)
        if self._context.num_input_pipelines > 1:
            from estimator_core._inputs.dealing import dealing

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
        return masking(opened.options, parts)(parts).size

    def _look_at_first(self, taken: TakenUp) -> tuple[Callable[[Parts], Mask], Iterator[PyTree]]:
        """Chooses the mask from the first batch, and puts that batch back."""
        for first in taken.elements:
            mask = masking(taken.walk.options, self._normalise(first))
            return mask, itertools.chain([first], taken.elements)
        return unpadded, taken.elements
