"""The digest of arrays: of all their bytes, or of a sample if they are large."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

_PIECES, _SMALLEST = 64, 64


def leaves_digest(leaves: Sequence[tuple[str, np.ndarray]], *, most: int) -> dict[str, Any]:
    """Returns the size and the digest of arrays. For a single array, it includes the digests of its pieces.

    Args:
        leaves: the arrays with their names.
        most: the maximum number of bytes to digest. Of larger arrays, only the beginnings of evenly spaced pieces are
            digested, and "sampled" is the number of these bytes.

    Example:
        >>> digest = leaves_digest([("x", np.zeros(1000, np.uint8))], most=640)
        >>> digest["size"], digest["sampled"], digest["step"]
        (1000, 640, 64)
    """
    fits = sum(array.nbytes for _, array in leaves) <= most
    share = most if fits else most // len(leaves)
    contents = [(f"{name} {array.dtype} {array.shape}", *_content(array, share)) for name, array in leaves]
    size, cut = sum(length for _, _, length, _ in contents), any(cut for *_, cut in contents)
    step = step_of(size)
    whole, pieces, taken = hashlib.sha256(), list[str](), 0
    for head, read, length, _ in contents:
        whole.update(head.encode())
        places = range(0, length, step_of(length))
        quota = length if length <= share else max(1, share // len(places))
        for place in places:
            part = read(place, min(place + min(places.step, quota), length))
            whole.update(part)
            taken += len(part)
            if len(leaves) == 1:
                pieces.append(hashlib.sha256(part).hexdigest()[:16])
    sampled = {"sampled": taken} if cut or taken < size else {}
    return {"size": size, "sha256": whole.hexdigest(), "step": step, "pieces": pieces, **sampled}


def step_of(size: int) -> int:
    """Returns the number of bytes of a piece."""
    return max(_SMALLEST, -(-size // _PIECES))


def _content(array: np.ndarray, most: int) -> tuple[Callable[[int, int], Any], int, bool]:
    """Returns a function that reads the bytes of an array, their number, and whether some are already left out."""
    if array.dtype.hasobject:
        text, cut = _text(array, most)
        return (lambda start, stop: text[start:stop]), len(text), cut
    if array.flags.c_contiguous or array.nbytes <= most:
        plain = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        return (lambda start, stop: plain[start:stop]), array.nbytes, False

    def read(start: int, stop: int) -> bytes:
        # Copies only these items: the array is too large for a copy of all.
        first = start // array.itemsize
        items = array.flat[first : -(-stop // array.itemsize)].tobytes()
        return items[start - first * array.itemsize :][: stop - start]

    return read, array.nbytes, False


def _text(array: np.ndarray, most: int) -> tuple[bytes, bool]:
    """Returns the elements as lines of text, because their bytes are pointers, and whether the text is cut."""
    bounds = [array.size * place // _PIECES for place in range(_PIECES + 1)]
    spans = [(start, stop) for start, stop in pairwise(bounds) if start < stop]
    parts: list[bytes] = []
    cut = False
    for start, stop in spans:
        left = most // len(spans)
        for item in array.flat[start:stop]:
            line = f"{item!r}\n".encode(errors="surrogatepass")
            parts.append(line[:left])
            left -= len(line)
            if left < 0:
                cut = True
                break
    return b"".join(parts), cut
