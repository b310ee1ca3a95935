"""Features of a batch as rows of values: text or integers, with a mask of the places that hold a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from estimator_canned_tabular.errors import FeatureColumnError
from estimator_canned_tabular.hashing.fingerprint import fingerprint64
from estimator_canned_tabular.host.spelling import Spelling

#: The largest integer of int64.
_MOST = 2**63 - 1


class Rows(NamedTuple):
    """The values of one feature.

    Attributes:
        values: int64[batch, values] or object[batch, values] of bytes.
        present: bool[batch, values].
    """

    values: np.ndarray
    present: np.ndarray

    @property
    def are_text(self) -> bool:
        """Whether the values are text."""
        return self.values.dtype == object

    @property
    def lengths(self) -> np.ndarray:
        """The index after the last value of each row, int64[batch]."""
        places = np.arange(1, self.present.shape[1] + 1)
        return (self.present * places).max(axis=1, initial=0)


def feature_of(batch: Mapping[str, np.ndarray], key: str, column: str) -> np.ndarray:
    """Returns a feature by name.

    Raises:
        FeatureColumnError: the feature is missing.
    """
    if key not in batch:
        raise FeatureColumnError(
            f"Feature {key!r} of column {column!r} is not in the features dictionary. Found: {sorted(batch)}. "
            "Add it to the input, or leave the column out of the model."
        )
    return np.asarray(batch[key])


def rows_of(
    batch: Mapping[str, np.ndarray],
    key: str,
    column: str,
    max_values: int | None = None,
    *,
    spelling: Spelling | None = None,
) -> Rows:
    """Returns the values of a categorical feature.

    `""`, None and NaN in text and -1 in integers mean no value. Rows may be lists of different lengths.

    Args:
        batch: the features of the batch.
        key: the name of the feature.
        column: the name of the column, for messages.
        max_values: the number of places of each row; None: the width of the array.
        spelling: the rule that converts dates or truth values to one form.

    Raises:
        FeatureColumnError: the values are floats, or an integer is beyond int64. A text has half a surrogate pair, or
            `spelling` refuses a value. Rows differ in length without max_values, or a row has more values than that.
    """
    array = _two_axes(feature_of(batch, key, column), key, column, max_values, missing=None)
    array = array if spelling is None else spelling.texts(array)
    if array.dtype.kind in "iub":
        rows = _of_integers(array, key)
    elif array.dtype.kind in "OSU":
        rows = _of_objects(array, key, column)
    else:
        raise FeatureColumnError(
            f"Feature {key!r} of column {column!r} must hold strings or integers, given: {array.dtype}."
        )
    rows = rows if spelling is None else _spelled(rows, key, spelling)
    return rows if max_values is None else _fitted(rows, max_values, key, column)


def numbers_of(
    batch: Mapping[str, np.ndarray], key: str, column: str, width: int, *, missing: float = 0.0, filled: float = np.nan
) -> np.ndarray:
    """Returns a feature of numbers, float32[batch, width]. Shorter rows are padded with `missing`.

    After the width, rows may only hold padding: `missing`, NaN or `filled`, the padding of their file.

    Raises:
        FeatureColumnError: the values are not numbers, a finite number becomes infinite, or a row is longer.
    """
    array = _two_axes(feature_of(batch, key, column), key, column, width, missing=missing)
    try:
        with np.errstate(over="raise"):
            numbers = array.astype(np.float32)
    except (FloatingPointError, OverflowError):
        raise _infinite(array, key) from None
    except (TypeError, ValueError) as error:
        raise FeatureColumnError(f"Feature {key!r} of column {column!r} must hold numbers: {error}.") from error
    found = numbers.shape[1]
    if found > width:
        rest = numbers[:, width:]
        empty = (rest == missing) | (rest == filled) | np.isnan(rest)
        if not empty.all():
            raise FeatureColumnError(f"Feature {key!r} of column {column!r} has {found} values, more than {width}.")
        return numbers[:, :width]
    return np.pad(numbers, ((0, 0), (0, width - found)), constant_values=missing)


def _infinite(array: np.ndarray, key: str) -> FeatureColumnError:
    for row, values in enumerate(array):
        try:
            with np.errstate(over="raise"):
                values.astype(np.float32)
        except (FloatingPointError, OverflowError):
            shown = values.tolist()[0] if values.size == 1 else values.tolist()
            return FeatureColumnError(
                f"Feature {key!r} holds {shown!s:.200} in row {row} of the batch, which is infinite as float32. "
                "Correct it, scale it, or take its logarithm before the column."
            )
    raise AssertionError("no number is infinite")


def check_finite(numbers: np.ndarray, used: np.ndarray, key: str, what: str) -> None:
    """Refuses NaN and infinite numbers in the places that the model uses.

    Args:
        numbers: the numbers, float32[batch, width].
        used: the mask of the places in use, bool[batch, width].
        key: the name of the feature.
        what: the meaning of the numbers, for the message.

    Raises:
        FeatureColumnError: a number is not finite. The message names the first one and its row.
    """
    strange = used & ~np.isfinite(numbers)
    if strange.any():
        row, place = np.argwhere(strange)[0].tolist()
        raise FeatureColumnError(
            f"Feature {key!r} holds {float(numbers[row, place])} in row {row} of the batch: {what} must be a finite "
            "number. Fill it or correct it, or leave the row out."
        )


def is_missing(value: Any) -> bool:
    """Returns whether an object means that there is no word: None, NaN, and NA and NaT of pandas.

    Example:
        >>> [is_missing(value) for value in (None, float("nan"), "a")]
        [True, True, False]
    """
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def text_of(rows: Rows) -> Sequence[bytes]:
    """Returns all values as text, including places without a value. Integers become decimal digits."""
    flat = rows.values.reshape(-1).tolist()
    return flat if rows.are_text else [str(value).encode() for value in flat]


def fingerprints_of(rows: Rows) -> np.ndarray:
    """Returns the Fingerprint64 of every value, uint64[batch, values]."""
    texts = text_of(rows)
    words = list(dict.fromkeys(texts))
    if 2 * len(words) > len(texts):  # few are repeated: to find them would cost more than to hash them again
        return fingerprint64(texts).reshape(rows.values.shape)
    distinct = dict(zip(words, range(len(words)), strict=True))
    hashes = fingerprint64(words)
    places = np.fromiter(map(distinct.__getitem__, texts), np.int64, len(texts))
    return hashes[places].reshape(rows.values.shape)


def _spelled(rows: Rows, key: str, spelling: Spelling) -> Rows:
    if not rows.are_text:
        raise FeatureColumnError(
            f"Feature {key!r} holds {rows.values.dtype}, but its column takes {spelling.kind}s. {spelling.cure}"
        )
    texts: list[bytes] = rows.values.reshape(-1).tolist()
    found = [spelling.canonical(text) if text else text for text in texts]
    if None in found:
        place = found.index(None)
        row = place // rows.values.shape[1]
        raise FeatureColumnError(
            f"Feature {key!r} holds {texts[place].decode(errors='replace')!r} in row {row}: it is not a "
            f"{spelling.kind} that the column can read. {spelling.cure}"
        )
    values = np.empty(len(found), object)
    values[:] = found
    return Rows(values.reshape(rows.values.shape), rows.present)


def _of_objects(array: np.ndarray, key: str, column: str) -> Rows:
    flat = array.reshape(-1).tolist()
    kinds = set(map(type, flat))  # a set of types costs a tenth of a check of each value
    if kinds == {bytes} and array.dtype == object:  # already as files provide them
        return Rows(array, array != b"")
    if flat and all(issubclass(kind, (int, np.integer)) for kind in kinds):
        return _of_integers(array, key)
    texts = np.empty(len(flat), object)
    try:
        texts[:] = [_bytes(value, key, column) for value in flat]
    except UnicodeEncodeError as error:
        row = flat.index(error.object) * len(array) // len(flat)
        raise FeatureColumnError(
            f"Feature {key!r} holds {error.object!r:.200} in row {row} of the batch, which has half a surrogate pair "
            "and no form in UTF-8. Correct it."
        ) from None
    return Rows(texts.reshape(array.shape), (texts != b"").reshape(array.shape))


def _of_integers(array: np.ndarray, key: str) -> Rows:
    """Returns integers as int64. Larger ones would become negative, and the largest of uint64 would mean no value."""
    try:
        if array.dtype == np.uint64 and (array > np.uint64(_MOST)).any():
            raise OverflowError
        values = array.astype(np.int64)
    except OverflowError:
        flat = array.reshape(-1).tolist()
        beyond = next(place for place, value in enumerate(flat) if not -_MOST - 1 <= value <= _MOST)
        raise FeatureColumnError(
            f"Feature {key!r} holds {flat[beyond]!s:.200} in row {beyond * len(array) // len(flat)} of the batch, "
            "which is beyond int64. Pass the feature as strings, in files with column_types, and give its column a "
            "dtype of strings."
        ) from None
    return Rows(values, values != -1)


def _bytes(value: Any, key: str, column: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if is_missing(value):
        return b""
    raise FeatureColumnError(
        f"Feature {key!r} of column {column!r} must hold strings or integers, given: {value!r} among strings."
    )


def _two_axes(array: np.ndarray, key: str, column: str, width: int | None, *, missing: Any) -> np.ndarray:
    if array.dtype == object and array.ndim == 1:
        kinds = set(map(type, array.tolist()))
        if any(issubclass(kind, (list, tuple, np.ndarray)) for kind in kinds):
            return _padded(array, key, column, width, missing)
    return array.reshape(len(array), math.prod(array.shape[1:]))  # not -1: there may be no rows


def _padded(rows: np.ndarray, key: str, column: str, width: int | None, missing: Any) -> np.ndarray:
    lists = [[] if row is None else np.atleast_1d(row).tolist() for row in rows.tolist()]
    sizes = set(map(len, lists))
    if width is None:
        if len(sizes) > 1:
            raise FeatureColumnError(
                f"Feature {key!r} of column {column!r} has rows of {min(sizes)} to {max(sizes)} values. Batches need "
                "one width: give the column max_values=."
            )
        width = max(sizes, default=0)
    whole = all(isinstance(value, (int, np.integer)) for row in lists for value in row) and any(lists)
    filling = missing if missing is not None else -1 if whole else b""
    filled = np.full((len(lists), max(width, max(sizes, default=0))), filling, object)
    for row, values in enumerate(lists):
        filled[row, : len(values)] = values
    return filled


def _fitted(rows: Rows, width: int, key: str, column: str) -> Rows:
    found = rows.values.shape[1]
    if found > width:
        full = np.nonzero(rows.present[:, width:].any(axis=1))[0]
        if full.size:
            raise FeatureColumnError(
                f"Feature {key!r} of column {column!r} has {int(rows.lengths[full[0]])} values in row {full[0]} of the "
                f"batch, more than max_values={width}."
            )
        return Rows(rows.values[:, :width], rows.present[:, :width])
    missing = ((0, 0), (0, width - found))
    return Rows(
        np.pad(rows.values, missing, constant_values=b"" if rows.are_text else -1), np.pad(rows.present, missing)
    )
