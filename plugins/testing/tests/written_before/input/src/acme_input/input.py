"""An input that reads numbers from a text file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.inputs.arrays import numpy_input_fn
from estimator_core.inputs.context import InputContext


def acme_input_input_fn(
    path: str | Path,
    *,
    batch_size: int,
    num_epochs: int | None = 1,
    shuffle: bool,
    seed: int | None = None,
    delimiter: str = ",",
) -> Callable[..., Any]:
    """An input_fn over a file with one example a line: numbers, the label last.

    The file is read when the first batch is drawn. Order, position and shards are those of `ec.inputs.numpy_input_fn`.

    Args:
        path: the file.
        batch_size: examples a batch.
        num_epochs: passes over the file; None repeats for ever.
        shuffle: whether each pass has an order of its own.
        seed: of these orders.
        delimiter: between two numbers.
    """

    def load() -> tuple[dict[str, np.ndarray], np.ndarray]:
        table = np.loadtxt(path, delimiter=delimiter, dtype=np.float32, ndmin=2)
        return {"x": table[:, :-1]}, table[:, -1]

    made = numpy_input_fn(load, batch_size=batch_size, num_epochs=num_epochs, shuffle=shuffle, seed=seed)

    def input_fn(input_context: InputContext) -> Any:
        return made(input_context=input_context)

    return input_fn
