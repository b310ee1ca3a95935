"""What an input declares about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from estimator_core.errors import ArgumentError

Ragged = Literal["exact", "pad"]


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """What an input declares; an iterator carries it as its attribute `input_options`.

    Args:
        fresh_arrays: it never writes again into an array it yielded, so nothing needs to be copied.
        replay: where it has no `get_state`/`set_state`, a position is reached by drawing and dropping batches.
        ragged: "exact" runs a short last batch at its true shape; "pad" fills it up and marks the rows in the weights.
        batch_size: rows a padded batch has; None: as many as the first batch.
        endless: it never ends by itself; an evaluation of it needs a number of steps.
        varying_shapes: sizes other than the batch may change from batch to batch, such as lengths padded to a few
            buckets; every shape costs one more compiled program.
        whole: with several processes, every one of them draws the same batches, which are those of all processes
            together, and keeps its own rows.

    Raises:
        ArgumentError: an unknown `ragged`, or a batch size below 1.
    """

    fresh_arrays: bool = False
    replay: bool = True
    ragged: Ragged = "exact"
    batch_size: int | None = None
    endless: bool = False
    varying_shapes: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if self.ragged not in ("exact", "pad"):
            raise ArgumentError(f'ragged must be "exact" (the true shape) or "pad", given: {self.ragged!r}.')
        if self.batch_size is not None and self.batch_size < 1:
            raise ArgumentError(f"batch_size must be at least 1, given: {self.batch_size}.")
