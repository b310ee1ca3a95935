"""Counts the values of a column, exactly up to a limit, and estimates the number of different values."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from estimator_inputs.statistics.cells import plain_values

#: The number of different values that are counted individually, and the total bytes of text that they may have.
MOST_COUNTED, MOST_BYTES = 1 << 16, 1 << 25
#: log2 of the number of registers of the sketch, and its standard error: 1.04 / sqrt(2 ** 14), as for any HyperLogLog.
_REGISTERS, RELATIVE_ERROR = 14, 0.0082
#: The integers below this are exact as float64.
_EXACT = 2**53


class Counts:
    """Counts values. With more than `most` different values, it counts the first ones and estimates their number.

    Attributes:
        known: the number of occurrences of each value, or of the first values only.
        exact: whether `known` contains all values.

    Args:
        most: the number of different values that are counted individually.

    Example:
        >>> import pyarrow as pa
        >>> counts = Counts()
        >>> counts.add(pa.array(["a", "b", "a"]))
        >>> dict(counts.known), counts.different, counts.exact
        ({'a': 2, 'b': 1}, 2, True)
    """

    def __init__(self, most: int = MOST_COUNTED) -> None:
        self._most = most
        self._bytes = 0
        self._known: dict[Any, int] = {}
        self._sketch: Any = None

    @property
    def known(self) -> Mapping[Any, int]:
        """See the class."""
        return self._known

    @property
    def exact(self) -> bool:
        """See the class."""
        return self._sketch is None

    @property
    def different(self) -> int:
        """The number of different values: exact, or with a relative standard error of `error`."""
        if self._sketch is None:
            return len(self._known)
        return max(round(self._sketch.get_estimate()), len(self._known))

    @property
    def error(self) -> float:
        """The relative standard error of `different`."""
        return 0.0 if self._sketch is None else RELATIVE_ERROR

    def add(self, values: Any) -> None:
        """Adds a flat Arrow array without nulls."""
        found = values.value_counts()
        pairs = zip(plain_values(found.field("values")), found.field("counts").to_pylist(), strict=True)
        known = self._known
        if self._sketch is None:
            for value, count in pairs:
                before = known.get(value)
                if before is None:
                    known[value] = count
                    self._bytes += len(value) if isinstance(value, str) else 0
                else:
                    known[value] = before + count
            if len(known) > self._most or self._bytes > MOST_BYTES:
                self._sketch = _sketch_of(known)
            return
        words: list[Any] = []
        for value, count in pairs:
            words.append(value)
            if value in known:
                known[value] += count
        _feed(self._sketch, map(_plain, words))

    def forget(self) -> None:
        """Keeps only the estimate. Call it only if there are more values than are counted individually."""
        assert self._sketch is not None
        self._known = {}

    def add_estimated(self, numbers: np.ndarray) -> None:
        """Adds numbers to the estimate only. Call it after `forget`."""
        if numbers.dtype.kind == "f":
            _feed(self._sketch, numbers.tolist())
            return
        real = numbers.astype(np.float64)  # so 3 and 3.0 are the same number
        small = np.abs(real) < _EXACT
        _feed(self._sketch, real[small].tolist())
        _feed(self._sketch, numbers[~small].tolist())


def _sketch_of(values: Iterable[Any]) -> Any:
    import datasketches

    sketch = cast(Any, datasketches).hll_sketch(_REGISTERS, cast(Any, datasketches).tgt_hll_type.HLL_8)
    _feed(sketch, map(_plain, values))
    return sketch


def _feed(sketch: Any, values: Iterable[Any]) -> None:
    deque(map(sketch.update, values), maxlen=0)


def _plain(value: Any) -> Any:
    """Returns the value for a sketch. An integer becomes a float if the float is exact."""
    return float(value) if isinstance(value, int) and abs(value) < _EXACT else value
