"""Which rows of large arrays have changed since the last full save: by comparison with the copy before."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

#: Bytes from which an array is looked at row by row; smaller ones are saved whole each time.
LEAST_BYTES = 1 << 20
#: Bytes compared together, so that what they differ in stays in the processor's cache.
_TOGETHER = 1 << 20

#: Item and name of a host copy.
Key = tuple[str, str]


class RowChanges:
    """Notes which rows differ from one copy to the next, bit by bit, whatever has changed them.

    Example:
        >>> changes = RowChanges(least_bytes=1)
        >>> table = np.zeros((4, 2), np.float32)
        >>> changes.begin({("variables", "t"): table})
        >>> later = table.copy()
        >>> later[2, 1] = 5
        >>> changes.look(("variables", "t"), table, later)
        >>> changes.rows()[("variables", "t")]
        array([2])
    """

    def __init__(self, least_bytes: int | None = None) -> None:
        self._least = LEAST_BYTES if least_bytes is None else least_bytes
        self._changed: dict[Key, np.ndarray] = {}

    def begin(self, copies: Mapping[Key, np.ndarray]) -> None:
        """A full save: from these copies on rows count as changed."""
        large = {key: copy for key, copy in copies.items() if copy.ndim and copy.nbytes >= self._least}
        self._changed = {key: np.zeros(len(copy), bool) for key, copy in large.items()}

    def look(self, key: Key, before: np.ndarray | None, now: np.ndarray) -> None:
        """Compares a copy with the one before; an array of another form is no longer followed, but saved whole."""
        known = self._changed.get(key)
        if known is None:
            return
        if before is None or before.shape != now.shape or before.dtype != now.dtype or not now.flags.c_contiguous:
            del self._changed[key]
            return
        rows, a, b = len(now), _by_rows(before), _by_rows(now)
        together = max(1, _TOGETHER // a.shape[1])
        for start in range(0, rows, together):
            stop = start + together
            known[start:stop] |= (a[start:stop] != b[start:stop]).any(axis=1)

    def rows(self) -> dict[Key, np.ndarray]:
        """Numbers of the rows that have changed since the full save; other arrays are to be saved whole."""
        return {key: np.flatnonzero(changed) for key, changed in self._changed.items()}


class _NoRowChanges(RowChanges):
    """Follows nothing: every save is a full one."""

    def begin(self, copies: Mapping[Key, np.ndarray]) -> None:
        """Does nothing."""


#: Where every save is a full one.
NO_ROW_CHANGES = _NoRowChanges()


def _by_rows(array: np.ndarray) -> np.ndarray:
    """An array as words of rows, as wide as divides them."""
    octets = array.reshape(len(array), -1).view(np.uint8)
    return octets.view(np.uint64) if octets.shape[1] % 8 == 0 else octets
