"""Continues at a saved position: restores it, replays the input, or starts again and says why."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax

from estimator_core._inputs.foreign import Walk
from estimator_core._inputs.position import InputPosition, difference
from estimator_core._types import PyTree

_END = object()


class TakenUp(NamedTuple):
    """A walk at its saved position.

    Attributes:
        walk: the walk to read.
        elements: what is still to be drawn from it.
        examples, batches: how many were read before.
        note: a line for the log; None if there was no position.
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
        position: where to continue; None: at the start.
        open_walk: opens the input; called again if the first walk turns out to be at its end.
        size_of: counts the examples of one element.
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
        return _again(opened, f"it has no position and replay is switched off; {position.examples} examples come again")
    return _replayed(position, opened, open_walk, size_of)


def _again(opened: Walk, why: str, *, ended: bool = False) -> TakenUp:
    return TakenUp(opened, opened.elements, 0, 0, f"Input starts again: {why}.", ended)


def _restored(position: InputPosition, opened: Walk, open_walk: Callable[[], Walk]) -> TakenUp:
    assert opened.set_state is not None
    try:
        opened.set_state(position.source_state)
    except Exception as error:  # whatever a foreign iterator raises on a state that is not its own
        return _again(open_walk(), f"its iterator refused the saved state ({error!r})")
    first = next(opened.elements, _END)
    if first is _END:
        return _again(open_walk(), f"it ends after {position.examples} examples", ended=True)
    note = f"Input continues after {position.examples} examples ({position.batches} batches)."
    return TakenUp(opened, itertools.chain([first], opened.elements), position.examples, position.batches, note)


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
    rest: list[PyTree] = []
    if seen > position.examples:  # batches had other sizes before: deliver the rest of this one
        rest = [_from_row(element, size - (seen - position.examples))]
    else:
        element = next(opened.elements, _END)
        if element is _END:
            return _again(open_walk(), f"it ends after {position.examples} examples", ended=True)
        rest = [element]
    note = (
        f"Input continues after {position.examples} examples: it has no position of its own, so {drawn} batches were "
        "drawn and dropped (ec.inputs.from_iterable(..., replay=False) starts again instead)."
    )
    return TakenUp(opened, itertools.chain(rest, opened.elements), position.examples, position.batches, note)


def _from_row(element: PyTree, row: int) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[row:] if getattr(leaf, "ndim", 0) else leaf, element)
