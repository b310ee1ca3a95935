"""The rows in the batches of a training, as numpy_input_fn draws them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def shuffled_rows(count: int, batch: int, seed: int = 1) -> Iterator[np.ndarray]:
    """Yields row numbers of full batches without end: one permutation per epoch."""
    shuffler = np.random.default_rng(seed)
    while True:
        order = shuffler.permutation(count)
        for start in range(0, count, batch):
            yield order[start : start + batch]
