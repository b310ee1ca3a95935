"""In which order examples are read: a pure function of (seed, epoch), so that any place can be reached at once."""

from __future__ import annotations

import numpy as np


def epoch_order(n: int, *, seed: int, epoch: int) -> np.ndarray:
    """The order of `n` examples in one epoch of a shuffled input: int64[n], a permutation of 0..n-1.

    Example:
        >>> sorted(epoch_order(5, seed=0, epoch=3).tolist())
        [0, 1, 2, 3, 4]
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, epoch)))).permutation(n)


class ExampleOrder:
    """Row numbers of the examples, epoch after epoch.

    Args:
        n: examples of the input.
        seed: of the permutations; None reads in order.

    Example:
        >>> ExampleOrder(3, seed=None).rows(1, 5).tolist()
        [1, 2, 0, 1]
    """

    def __init__(self, n: int, *, seed: int | None) -> None:
        self._n = n
        self._seed = seed
        self._epoch = -1
        self._order: np.ndarray = np.empty(0, np.int64)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Row numbers of examples `start` to `stop`, counted over all epochs; int64[stop - start]."""
        epoch, first = divmod(start, self._n)
        last = first + stop - start
        if last <= self._n:
            return self._of_epoch(epoch)[first:last]
        parts = [self._of_epoch(epoch)[first:]]
        missing = last - self._n
        while missing > 0:
            epoch += 1
            parts.append(self._of_epoch(epoch)[:missing])
            missing -= self._n
        return np.concatenate(parts)

    def contiguous(self, start: int, stop: int) -> slice | None:
        """The same as one slice where the input is read in order and the range stays within an epoch, else None."""
        first = start % self._n
        last = first + stop - start
        return None if self._seed is not None or last > self._n else slice(first, last)

    def _of_epoch(self, epoch: int) -> np.ndarray:
        if epoch != self._epoch:
            whole = np.arange(self._n) if self._seed is None else epoch_order(self._n, seed=self._seed, epoch=epoch)
            self._order, self._epoch = whole, epoch
        return self._order
