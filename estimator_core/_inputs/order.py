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
    """Row numbers of the examples of one shard, epoch after epoch.

    Each epoch's order is dealt out to the shards like cards, so after k examples each, the shards together have read
    the first k * shards examples of it.

    Args:
        n: examples of the whole input.
        seed: of the permutations; None reads in order.
        shard: (this shard, number of shards).
        even: every shard leaves out what would make it longer than another.

    Example:
        >>> order = ExampleOrder(5, seed=None, shard=(1, 2), even=False)
        >>> order.length, order.rows(0, 5).tolist()
        (2, [1, 3, 1, 3, 1])
    """

    def __init__(self, n: int, *, seed: int | None, shard: tuple[int, int], even: bool) -> None:
        index, count = shard
        self.length = n // count if even else len(range(index, n, count))
        self._n = n
        self._seed = seed
        self._index, self._stride = index, count
        self._epoch = -1
        self._order: np.ndarray = np.empty(0, np.int64)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Row numbers of examples `start` to `stop`, counted over all epochs; int64[stop - start]."""
        epoch, first = divmod(start, self.length)
        last = first + stop - start
        if last <= self.length:
            return self._of_epoch(epoch)[first:last]
        parts = [self._of_epoch(epoch)[first:]]
        missing = last - self.length
        while missing > 0:
            epoch += 1
            parts.append(self._of_epoch(epoch)[:missing])
            missing -= self.length
        return np.concatenate(parts)

    def contiguous(self, start: int, stop: int) -> slice | None:
        """The same as one slice where the input is read in order and the range stays within an epoch, else None."""
        first = start % self.length
        last = first + stop - start
        if self._seed is not None or last > self.length:
            return None
        return slice(self._index + first * self._stride, self._index + last * self._stride, self._stride)

    def _of_epoch(self, epoch: int) -> np.ndarray:
        if epoch != self._epoch:
            whole = np.arange(self._n) if self._seed is None else epoch_order(self._n, seed=self._seed, epoch=epoch)
            self._order, self._epoch = whole[self._index :: self._stride][: self.length], epoch
        return self._order
