"""Label vocabularies: strings on the host, ids inside the computation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from estimator_core.errors import ArgumentError


class Vocabulary:
    """The names of the classes, in the order of their ids.

    Args:
        names: strings without repetition.
        what: the name of the vocabulary in errors.

    Raises:
        ArgumentError: `names` is not a list or tuple of unique strings.

    Example:
        >>> import numpy as np
        >>> vocabulary = Vocabulary(["aang", "iroh"])
        >>> vocabulary.ids(np.array([["iroh"], ["aang"]])).tolist()
        [[1], [0]]
        >>> vocabulary.strings(np.array([1, 1])).tolist()
        ['iroh', 'iroh']
    """

    def __init__(self, names: Sequence[str], what: str = "label_vocabulary") -> None:
        if not isinstance(names, (list, tuple)):
            raise ArgumentError(f"{what} should be a list or a tuple. Given type: {type(names)}")
        if not names or not all(isinstance(name, str) for name in names):
            raise ArgumentError(f"{what} must hold at least one string and strings only. Given: {names!r}")
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise ArgumentError(f"{what} must name each class once. Given more than once: {twice}")
        self.names = tuple(str.__str__(name) for name in names)  # the text of a member of an enum
        self._what = what
        self._array = np.array(self.names)
        self._order = np.argsort(self._array)
        self._sorted = self._array[self._order]

    def __len__(self) -> int:
        return len(self.names)

    def ids(self, labels: Any) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Returns the id of each label, int32 of the same shape.

        Args:
            labels: an array of strings or UTF-8 bytes.

        Raises:
            ArgumentError: a label is not in the vocabulary, or is not a string.
        """
        strings = as_strings(labels)
        places = np.minimum(np.searchsorted(self._sorted, strings), len(self._sorted) - 1)
        known = self._sorted[places] == strings
        if not known.all():
            unknown = sorted(set(strings[~known].tolist()))
            raise ArgumentError(
                f"Labels must be >= 0: {unknown[:5]} are not in {self._what} {list(self.names[:20])}. "
                "Correct the data, or add them to the vocabulary."
            )
        return self._order[places].astype(np.int32)

    def strings(self, ids: Any) -> np.ndarray[Any, Any]:
        """Returns the name of each id, an array of str of the same shape."""
        return self._array[np.asarray(ids)]


def are_strings(labels: Any) -> bool:
    """Returns whether labels are strings, bytes or objects, which never enter a computation.

    Example:
        >>> import numpy as np
        >>> are_strings(np.array(["a"])), are_strings(np.array([1]))
        (True, False)
    """
    return not isinstance(labels, jax.Array) and np.asarray(labels).dtype.kind in "OSU"


def as_strings(labels: Any) -> np.ndarray[Any, Any]:
    """Converts an array to str. Bytes are read as UTF-8.

    Raises:
        ArgumentError: there are values other than strings and bytes, or bytes that are not UTF-8.
    """
    array = np.asarray(labels)
    if array.dtype.kind in "OS":
        flat = [_decoded(value) if isinstance(value, bytes) else value for value in array.ravel().tolist()]
        if not all(isinstance(value, str) for value in flat):
            wrong = next(value for value in flat if not isinstance(value, str))
            raise ArgumentError(f"Labels should be strings if there is a vocabulary. Instead got {wrong!r}.")
        return np.array(flat, np.str_).reshape(array.shape)
    if array.dtype.kind != "U":
        raise ArgumentError(f"Labels should be strings if there is a vocabulary. Instead got dtype {array.dtype}.")
    return array


def _decoded(label: bytes) -> str:
    try:
        return label.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ArgumentError(f"Labels should be UTF-8. Instead got {label!r}. Correct the data.") from error
