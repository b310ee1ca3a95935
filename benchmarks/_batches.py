"""Which rows the batches of a training consist of, as numpy_input_fn draws them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def shuffled_rows(count: int, batch: int, seed: int = 1) -> Iterator[np.ndarray]:
    """Numbers of the rows of whole batches, without an end: one permutation an epoch."""
    shuffler = np.random.default_rng(seed)
    while True:
        order = shuffler.permutation(count)
        for start in range(0, count, batch):
            yield order[start : start + batch]
