"""`from_iterable`: what an input of somebody else's promises, said where the input is made."""

from __future__ import annotations

from typing import Any

from estimator_core._inputs.calling import check_input_fn
from estimator_core._inputs.options import InputOptions, Ragged
from estimator_core._inputs.wrapped import WrappedInput
from estimator_core.errors import ArgumentTypeError


def from_iterable(
    source: Any,
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
        replay: True reaches a saved position by drawing and dropping batches where the source has no position of its
            own; False starts again.
        ragged: "exact" runs a short last batch at its true shape; "pad" fills it up with copies of its last example and
            marks the rows in `Batch.weights`.
        batch_size: rows to fill up to; None: as many as the first batch.
        whole: True promises that every process draws the same batches: with several processes they are those of all
            together, and each process keeps its own rows, so the numbers are those of one process.

    Raises:
        ArgumentTypeError: the source can be neither called nor iterated.
        ArgumentError: an unknown `ragged`, or a batch size below 1.
        InputError: an input_fn with arguments that cannot be filled.

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
