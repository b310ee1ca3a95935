"""Dates and times as text: one canonical form for all the spellings of a moment in files and requests."""

from __future__ import annotations

import functools
import re
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

_ZONE = r"\s?(?:Z|z|[+-]\d\d:?\d\d)"
_WRITTEN = re.compile(rf"\d{{4}}-\d\d-\d\d(?:[Tt ](\d\d:\d\d(?::\d\d(?:[.,](\d+))?)?)({_ZONE})?)?", re.ASCII)
#: The advice in messages.
CURE = "Write it as 2024-01-31, or with a time as 2024-01-31T09:30:00; leave it empty where there is none."


@functools.lru_cache(maxsize=1 << 16)
def canonical_date(text: str | bytes) -> bytes | None:
    """Returns the canonical form of a date or time of ISO 8601, without the time if that is midnight. Other text: None.

    A time without a time zone is UTC.

    Example:
        >>> [canonical_date(text) for text in ("2024-01-31 00:00:00.000", "2024-01-31T01:30+01:00", "31/01/2024")]
        [b'2024-01-31', b'2024-01-31T00:30:00', None]
    """
    plain = (text.decode(errors="replace") if isinstance(text, bytes) else text).strip()
    found = _WRITTEN.fullmatch(plain)
    if found is None:
        return None
    time, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{plain[:10]}T{(time or '00:00')[:8]}{(zone or 'Z').strip()}").astimezone(UTC)
    except (ValueError, OverflowError):  # no such day, or none that datetime can represent
        return None
    rest = (fraction or "").rstrip("0")
    clock = "" if not rest and moment.time() == datetime.min.time() else f"T{moment:%H:%M:%S}{'.' * bool(rest)}{rest}"
    return f"{moment.date().isoformat()}{clock}".encode()


def texts_of_dates(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns an array of dates, or of objects that include some, as texts. Missing dates are None.

    Other values are unchanged.

    Example:
        >>> texts_of_dates(np.array(["2024-01-31", "NaT"], "datetime64[D]")).tolist()
        ['2024-01-31', None]
    """
    if array.dtype.kind == "M":
        return np.where(
            np.isnat(array), np.full(array.shape, None, object), np.datetime_as_string(array).astype(object)
        )
    if array.dtype.kind != "O":
        return array
    texts = np.empty(array.size, object)
    texts[:] = [_text(value) for value in array.reshape(-1).tolist()]
    return texts.reshape(array.shape)


def _text(value: Any) -> Any:
    if not isinstance(value, (date, np.datetime64)):
        return None if type(value).__name__ in ("NAType", "NaTType") else value
    return None if value != value else str(value)  # NaT is a date that does not equal itself
