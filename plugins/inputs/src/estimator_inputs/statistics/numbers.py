"""The numbers of a column: their moments and their distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from estimator_inputs.statistics.counts import Counts

#: The size of the sketch. With it, the rank of a quantile differs by at most 0.3% of the rows (with 99% confidence).
_K = 1024
_PIECE = 1 << 16
#: The square of a number above the first may overflow. Such numbers are multiplied by the second.
_LARGE, _SCALE = 2.0**480, 2.0**-530


class Moments:
    """The mean, deviation and limits of numbers, and the counts of zeros and infinite numbers.

    Attributes:
        count, infinite, zeros: the number of all numbers, of infinite ones, and of zeros.
        low, high: the limits of all numbers. None before the first number.
        whole: whether all finite numbers are integers.
    """

    def __init__(self) -> None:
        self.count = self.infinite = self.zeros = 0
        self.low: float | None = None
        self.high: float | None = None
        self.whole = True
        self._mean = self._squares = 0.0
        self._scale = 1.0

    @property
    def mean(self) -> float:
        """The mean of the finite numbers."""
        return self._mean / self._scale

    @property
    def deviation(self) -> float:
        """The population standard deviation of the finite numbers."""
        return float(np.sqrt(self._squares / max(self.count - self.infinite, 1))) / self._scale

    def add(self, numbers: np.ndarray) -> None:
        """Adds numbers[n], without NaN."""
        if not numbers.size:
            return
        low, high = numbers.min().item(), numbers.max().item()
        self.low = low if self.low is None else min(low, self.low)
        self.high = high if self.high is None else max(high, self.high)
        before = self.count - self.infinite
        self.count += numbers.size
        self.zeros += int(numbers.size - np.count_nonzero(numbers))
        finite = numbers
        if numbers.dtype.kind == "f":
            finite = numbers[np.isfinite(numbers)]
            self.infinite += numbers.size - finite.size
            self.whole = self.whole and bool((finite == np.rint(finite)).all())
        if not finite.size:
            return
        if self._scale == 1.0 and max(-low, high) > _LARGE:
            self._scale = _SCALE
            self._mean *= _SCALE
            self._squares *= _SCALE
            self._squares *= _SCALE  # the square of the scale is too small for a product
        real = finite.astype(np.float64) * self._scale
        # combines two parts by the method of Chan, Golub and LeVeque
        mean = float(real.mean())
        total = before + real.size
        self._squares += float(np.square(real - mean).sum()) + (mean - self._mean) ** 2 * before * real.size / total
        self._mean += (mean - self._mean) * real.size / total


class Numbers:
    """The distribution of the numbers of a column. It is exact up to a number of different values, and then a sketch.

    Attributes:
        counts: the number of occurrences of each number, as long as the distribution is exact.

    Example:
        >>> import pyarrow as pa
        >>> numbers = Numbers()
        >>> numbers.add(pa.array([3, 1, 2, 2]))
        >>> numbers.quantiles([0.0, 0.5, 1.0]), numbers.below([1, 2]), numbers.exact
        ([1.0, 2.0, 3.0], [0.25, 0.75], True)
    """

    def __init__(self) -> None:
        self.counts = Counts()
        self._sketch: Any = None
        self._sorted: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def exact(self) -> bool:
        """Whether `quantiles` and `below` are exact."""
        return self._sketch is None

    @property
    def rank_error(self) -> float:
        """The error of the rank of a quantile, as a share of all numbers, with a confidence of 99%."""
        return 0.0 if self._sketch is None else float(self._sketch.normalized_rank_error(False))

    def add(self, values: Any) -> None:
        """Adds a flat Arrow array of numbers, without null or NaN."""
        self._sorted = None
        if self._sketch is None:
            self.counts.add(values)
            if not self.counts.exact:
                self._sketch = self._begun()
            return
        numbers = values.to_numpy(zero_copy_only=False)
        self.counts.add_estimated(numbers)
        self._sketch.update(numbers.astype(np.float64))

    def quantiles(self, levels: Sequence[float]) -> list[float]:
        """Returns the quantiles at these levels. If exact, they are interpolated as in `numpy.quantile`."""
        if self._sketch is not None:
            return [float(value) for value in self._sketch.get_quantiles(np.array(levels, np.float64))]
        numbers, ends = self._in_order()
        at = np.array(levels) * (ends[-1] - 1)
        low = numbers[np.searchsorted(ends, np.floor(at), side="right")]
        high = numbers[np.searchsorted(ends, np.ceil(at), side="right")]
        part = at - np.floor(at)
        with np.errstate(invalid="ignore", over="ignore"):
            gap = high - low
            between = np.where(np.isinf(gap), low * (1 - part) + high * part, low + gap * part)
            between = np.where((part == 0) | (low == high), low, between)
        return between.tolist()

    def below(self, points: Sequence[float]) -> list[float]:
        """Returns the share of numbers at or below each point."""
        if self._sketch is not None:
            return [float(self._sketch.get_rank(float(point), True)) for point in points]
        numbers, ends = self._in_order()
        ranks = np.append(0, ends)[np.searchsorted(numbers, np.array(points, np.float64), side="right")]
        return (ranks / ends[-1]).tolist()

    def _in_order(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the different numbers in order, and for each the count of numbers at or below it."""
        if self._sorted is None:
            known = sorted(self.counts.known.items())
            numbers = np.array([number for number, _ in known], np.float64)
            self._sorted = numbers, np.cumsum([count for _, count in known])
        return self._sorted

    def _begun(self) -> Any:
        import datasketches

        sketch = cast(Any, datasketches).kll_doubles_sketch(_K)
        numbers, ends = self._in_order()
        counts = np.diff(ends, prepend=0)
        for first in range(0, int(ends[-1]), _PIECE):  # repeats each number by its count, but not all numbers at once
            last = min(first + _PIECE, int(ends[-1]))
            begins = np.clip(ends - counts, first, last)
            sketch.update(np.repeat(numbers, np.clip(ends, first, last) - begins))
        self._sorted = None
        self.counts.forget()
        return sketch
