"""Statistics of columns, gathered batch by batch."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

#: Different texts that are counted; a column with more is told to have more.
_MOST_TEXTS = 10_000


class ColumnStatistics:
    """Counts and moments of one column.

    Args:
        text: whether its values are bytes.
    """

    def __init__(self, *, text: bool) -> None:
        self._text = text
        self._n = 0
        self._empty = 0
        self._sum = 0.0
        self._squares = 0.0
        self._low: Any = None
        self._high: Any = None
        self._texts: Counter[bytes] = Counter()
        self._more = False

    def add(self, values: np.ndarray) -> None:
        """Takes the values of a batch, of any shape."""
        flat = values.reshape(-1)
        self._n += flat.size
        if not flat.size:
            return
        if self._text:
            self._empty += int((flat == b"").sum())
            self._texts.update(flat.tolist())
            if len(self._texts) > _MOST_TEXTS:
                self._more = True
                self._texts = Counter(dict(self._texts.most_common(_MOST_TEXTS // 2)))
            return
        real = flat.astype(np.float64)
        known = real[~np.isnan(real)]
        self._empty += real.size - known.size
        self._sum += float(known.sum())
        self._squares += float((known**2).sum())
        if known.size:
            low, high = known.min(), known.max()
            self._low = low if self._low is None else min(low, self._low)
            self._high = high if self._high is None else max(high, self._high)

    def result(self) -> dict[str, Any]:
        """JSON values."""
        if self._text:
            common = [[text.decode(errors="backslashreplace"), n] for text, n in self._texts.most_common(3)]
            distinct = len(self._texts)
            more = {"more_than": distinct} if self._more else {"distinct": distinct}
            return {"values": self._n, "empty": self._empty, **more, "most_common": common}
        known = self._n - self._empty
        if not known:
            return {"values": self._n, "nan": self._empty}
        mean = self._sum / known
        deviation = float(np.sqrt(max(self._squares / known - mean**2, 0.0)))
        numbers = {"min": float(self._low), "max": float(self._high), "mean": mean, "deviation": deviation}
        return {"values": self._n, "nan": self._empty, **numbers}
