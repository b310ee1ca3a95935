"""Truth values as text: one canonical form for all the spellings in files, tables and requests."""

from __future__ import annotations

from typing import Any

import numpy as np

#: The spellings of Arrow, pandas and spreadsheets.
_SPELLED = {word: form for form in (b"true", b"false") for word in (form, form.title(), form.upper())}


def canonical_truth(text: str | bytes) -> bytes | None:
    """Returns the canonical form of a truth value, or None for any other text.

    Example:
        >>> [canonical_truth(text) for text in ("True", b"FALSE", "true", "yes")]
        [b'true', b'false', b'true', None]
    """
    return _SPELLED.get(text.encode() if isinstance(text, str) else text)


def texts_of_truths(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns truth values, or the 1 and 0 of tables with empty rows, as texts. Missing values are None.

    Other values are unchanged.

    Example:
        >>> texts_of_truths(np.array([1.0, np.nan, 0.0])).tolist()
        ['true', None, 'false']
    """
    if array.dtype.kind not in "biufO":
        return array
    texts = np.empty(array.size, object)
    texts[:] = [_text(value) for value in array.reshape(-1).tolist()]
    return texts.reshape(array.shape)


def _text(value: Any) -> Any:
    if type(value).__name__ == "NAType" or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, (bool, np.bool_, int, float)) and value in (0, 1):
        return "true" if value else "false"
    return value
