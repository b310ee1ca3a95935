"""The fingerprint of the data: sizes and digests of files and arrays, piece by piece, and of the first batch.

The pieces show which bytes have changed.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.inputs import ArrayInput
from estimator_runs.capsule.arrays import leaves_digest, step_of

#: The bytes that are digested at the start of a run. Beyond them, the size of files is recorded, and a sample of
#: arrays.
MOST_BYTES = 1 << 30
#: The prefix of the keys of batches. Two starts need not have such a key in common.
BATCH = "batch of step "


def data_fingerprint(input_fn: Callable[..., Any], batch: Any, *, step: int = 1) -> dict[str, Any]:
    """Returns the fingerprint of the data of a training.

    Args:
        input_fn: the training input. Files of file inputs and arrays of array inputs are digested. Another input is not
            opened again, because that could change what it yields.
        batch: the first batch of the call.
        step: the step of the batch.
    """
    source = _innermost(input_fn)
    drawn = {"features": batch.features, "labels": batch.labels, "host": dict(batch.host)}
    found = {f"{BATCH}{step}": leaves_digest(_leaves(drawn), most=MOST_BYTES)}
    if isinstance(source, ArrayInput):
        found |= _array_digests(_arrays(source))
    left = MOST_BYTES
    for path in map(Path, getattr(source, "files", ())):
        size = path.stat().st_size
        left -= size
        name = _without_holder(path)
        key = next(key for key in chain([name], (f"{name} ({n})" for n in count(2))) if key not in found)
        found[key] = file_digest(path) if left >= 0 else {"size": size}
    return found


def _array_digests(arrays: list[tuple[str, np.ndarray]]) -> dict[str, Any]:
    """Returns the digests of arrays. Small arrays come first, so that labels are digested whole."""
    found: dict[str, Any] = {}
    left = MOST_BYTES
    for place, (name, array) in enumerate(sorted(arrays, key=lambda one: one[1].nbytes)):
        digest = leaves_digest([(name, array)], most=left // (len(arrays) - place))
        left -= digest.get("sampled", digest["size"])
        found[f"array {name}"] = digest
    return found


def _without_holder(path: Path) -> str:
    """Returns the key of a file. The copy of a file at a URL is in a directory with a different name in each process.

    Example:
        >>> _without_holder(Path(tempfile.gettempdir(), "estimator-copy-1x", "a", "rows.csv"))
        'file a/rows.csv of a URL'
    """
    home, whole = Path(tempfile.gettempdir()).resolve(), path.resolve()
    if not whole.is_relative_to(home) or not whole.relative_to(home).parts[0].startswith("estimator-copy-"):
        return f"file {path}"
    return f"file {'/'.join(whole.relative_to(home).parts[1:])} of a URL"


def file_digest(path: Path) -> dict[str, Any]:
    """Returns the size of a file, its digest, and the digests of its pieces."""
    size = path.stat().st_size
    step = step_of(size)
    whole, pieces = hashlib.sha256(), list[str]()
    with path.open("rb") as file:
        for _ in range(0, size, step):
            piece = hashlib.sha256()
            for part in _parts(file, step):
                piece.update(part)
                whole.update(part)
            pieces.append(piece.hexdigest()[:16])
    return {"size": size, "sha256": whole.hexdigest(), "step": step, "pieces": pieces}


def changed_place(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Returns the place at which two digests differ, in words.

    Example:
        >>> old = {"size": 100, "step": 64, "pieces": ["a", "b"]}
        >>> changed_place(old, {**old, "pieces": ["a", "c"]})
        'bytes 64 to 100'
        >>> changed_place(old, {**old, "size": 90})
        '100 bytes, now 90'
    """
    if before.get("size") != now.get("size"):
        return f"{before.get('size')} bytes, now {now.get('size')}"
    step = int(before.get("step", 0))
    for place, (old, new) in enumerate(zip(before.get("pieces", ()), now.get("pieces", ()), strict=False)):
        if old != new:
            return f"bytes {place * step} to {min((place + 1) * step, before['size'])}"
    return "different content"


def _parts(file: Any, size: int) -> Iterator[bytes]:
    while size > 0 and (part := file.read(min(size, 1 << 20))):
        size -= len(part)
        yield part


def _innermost(input_fn: Any) -> Any:
    while hasattr(input_fn, "input_fn"):
        input_fn = input_fn.input_fn
    return input_fn


def _arrays(source: ArrayInput) -> list[tuple[str, np.ndarray]]:
    """Returns all arrays of an input."""
    found: list[tuple[str, np.ndarray]] = []

    def see(features: Any, labels: Any) -> tuple[Any, Any]:
        found.extend(_leaves({"features": features, "labels": labels}))
        return features, labels

    iterator = source().mapped(see)
    assert iterator.fingerprint, "reading it loads the arrays"
    return found


def _leaves(tree: Any) -> list[tuple[str, np.ndarray]]:
    import jax

    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), _own(leaf)) for path, leaf in leaves]


def _own(leaf: Any) -> np.ndarray:
    """Returns a leaf as an array. If the leaf spans several processes, it is the part on this one's devices."""
    if getattr(leaf, "is_fully_addressable", True):
        return np.asarray(leaf)
    return np.concatenate([np.asarray(shard.data).reshape(-1) for shard in leaf.addressable_shards])
