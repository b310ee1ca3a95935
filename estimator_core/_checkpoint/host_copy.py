"""Copies device arrays to host memory that no other array shares.

A numpy view of a live jax array on the CPU silently disables its donation, so every array is really copied. The buffers
are kept from one save to the next, because the first use of fresh pages costs far more than the copy itself. A copy can
therefore be compared with the previous one, which shows the rows of large arrays that changed since the last full save.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_core.errors import CheckpointError

#: The size in bytes from which an array is compared row by row. Smaller arrays are saved whole each time.
LEAST_BYTES = 1 << 20
#: The number of bytes that are compared together, so that the differences stay in the processor's cache.
_TOGETHER = 1 << 20
#: The number of bytes of each part that threads copy in parallel, since one core reaches half of the speed of the
#: memory.
_PART = 8 << 20
_THREADS = min(4, os.cpu_count() or 1)

_KINDS_OF_THE_HOST = ("pinned_host", "unpinned_host")

#: The item and the name of a host copy.
Key = tuple[str, str]


class RowChanges:
    """Records which rows differ from one copy to the next, bit by bit, whatever changed them.

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
        """Starts at a full save: later changes are relative to these copies."""
        large = {key: copy for key, copy in copies.items() if copy.ndim and copy.nbytes >= self._least}
        self._changed = {key: np.zeros(len(copy), bool) for key, copy in large.items()}

    def look(self, key: Key, before: np.ndarray | None, now: np.ndarray) -> None:
        """Compares a copy with the previous one. An array of another form is no longer tracked, but saved whole."""
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
        """Returns the numbers of the rows that changed since the full save, for each tracked array."""
        return {key: np.flatnonzero(changed) for key, changed in self._changed.items()}


class _NoRowChanges(RowChanges):
    """Tracks no rows, so that every save is a full one."""

    def begin(self, copies: Mapping[Key, np.ndarray]) -> None:
        """Does nothing."""


#: Used when every save is a full save.
NO_ROW_CHANGES = _NoRowChanges()


def _by_rows(array: np.ndarray) -> np.ndarray:
    """Returns the rows of an array as words of 8 bytes, or as bytes if the size of a row is not a multiple of 8."""
    octets = array.reshape(len(array), -1).view(np.uint8)
    return octets.view(np.uint64) if octets.shape[1] % 8 == 0 else octets


@dataclass(frozen=True, kw_only=True)
class HostArray:
    """One array as it is stored, with its original form.

    Args:
        stored: a numpy array in C order, in memory that it shares with no other array.
        shape, dtype: the shape and dtype of the original. They differ from those of the stored array only for typed
            random keys.
        key_impl: the random number generator of a typed key, otherwise None.
    """

    stored: np.ndarray
    shape: tuple[int, ...]
    dtype: str
    key_impl: str | None = None


class HostBuffers:
    """Takes host copies and reuses the memory of the previous copy, which must no longer be in use.

    Args:
        changes: the object that receives each array together with the previous copy.

    Example:
        >>> buffers = HostBuffers()
        >>> live = np.arange(3.0)
        >>> copy = buffers.copy({"variables": {"x": live}})["variables"]["x"]
        >>> live[:] = 0
        >>> copy.stored, copy.dtype
        (array([0., 1., 2.]), 'float64')
    """

    def __init__(self, changes: RowChanges = NO_ROW_CHANGES) -> None:
        self._buffers: dict[tuple[str, str], np.ndarray] = {}
        self._changes = changes

    def copy(self, items: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, HostArray]]:
        """Returns copies of every array, by item and path.

        Raises:
            CheckpointError: a value is not an array, or a part of it is not on the devices of this process.
        """
        for named in items.values():
            for value in named.values():
                if _is_jax_array(value) and value.is_fully_addressable and not _is_key(value):
                    _start_copy(value)
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        copies = {
            item: {path: self._copy(item, path, value, parts) for path, value in named.items()}
            for item, named in items.items()
        }
        with ThreadPoolExecutor(_THREADS, "copies") as threads:  # without parts, no thread starts
            for _ in threads.map(lambda part: np.copyto(*part), parts):
                pass  # an error of a part is raised here
        self._buffers = {(item, path): host.stored for item, named in copies.items() for path, host in named.items()}
        return copies

    def begin_full(self) -> None:
        """Declares that the newest copy belongs to a full save."""
        self._changes.begin(self._buffers)

    def release(self) -> None:
        """Releases the memory."""
        self._buffers = {}

    def _copy(self, item: str, path: str, value: Any, parts: list[tuple[np.ndarray, np.ndarray]]) -> HostArray:
        if not _is_jax_array(value):
            host = _as_numpy(item, path, value)
            self._changes.look((item, path), self._buffers.get((item, path)), host)
            stored = self._own(item, path, host, parts)
            return HostArray(stored=stored, shape=stored.shape, dtype=stored.dtype.name)
        if not (value.is_fully_addressable or value.is_fully_replicated):
            raise CheckpointError(
                f"{item} {path!r} is spread over the devices of several processes ({value.sharding}). To save "
                "it, all of them must use one store together: CheckpointStore(..., processes=...)."
            )
        if _is_key(value):
            import jax

            stored = self._own(item, path, np.asarray(jax.random.key_data(value)), parts)
            key_impl = str(jax.random.key_impl(value))
            return HostArray(stored=stored, shape=value.shape, dtype=value.dtype.name, key_impl=key_impl)
        host = np.asarray(value)
        self._changes.look((item, path), self._buffers.get((item, path)), host)
        owned = is_of_the_host(value.sharding) or not host.flags.c_contiguous
        stored = self._own(item, path, host, parts) if owned else host
        return HostArray(stored=stored, shape=stored.shape, dtype=stored.dtype.name)

    def _own(self, item: str, path: str, host: np.ndarray, parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Returns the buffer of an array, with its copy.

        The parts of a large array are added to `parts` and copied later.
        """
        buffer = self._buffers.get((item, path))
        if buffer is None or buffer.shape != host.shape or buffer.dtype != host.dtype or not buffer.flags.writeable:
            buffer = np.empty(host.shape, host.dtype)
        if host.nbytes < 2 * _PART or not host.flags.c_contiguous:
            np.copyto(buffer, host)
            return buffer
        into, source, step = buffer.reshape(-1), host.reshape(-1), _PART // host.itemsize
        parts += [(into[start : start + step], source[start : start + step]) for start in range(0, source.size, step)]
        return buffer


def _start_copy(value: Any) -> None:
    # jax 0.11 keeps a view if no copy is needed, which prevents donation.
    if not is_of_the_host(value.sharding):
        value.copy_to_host_async()


def is_of_the_host(sharding: Any) -> bool:
    """Returns whether arrays are in host memory, where numpy reads them without a copy.

    An accelerator may have such memory.

    Args:
        sharding: the sharding of the arrays.
    """
    on_cpu = any(device.platform == "cpu" for device in sharding.device_set)
    return on_cpu or sharding.memory_kind in _KINDS_OF_THE_HOST


def _as_numpy(item: str, path: str, value: object) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind in "OSUMm" or array.dtype.fields is not None:
        raise CheckpointError(
            f"{item} {path!r} is {type(value).__name__} of dtype {array.dtype}; a checkpoint holds numeric and boolean "
            "arrays. Convert it, or keep it as JSON in a hook's state."
        )
    return array


def _is_jax_array(value: object) -> bool:
    jax = sys.modules.get("jax")  # without jax, no value is a jax array
    return jax is not None and isinstance(value, jax.Array)


def _is_key(value: Any) -> bool:
    import jax

    return jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key)
