"""Copies of device arrays in host memory that nothing else refers to.

A numpy view of a live jax array on the CPU switches its donation off without a word, so every array is really copied.
The buffers are kept from one save to the next: touching fresh pages costs far more than the copy itself.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_core._checkpoint.row_changes import NO_ROW_CHANGES, RowChanges
from estimator_core.errors import CheckpointError


@dataclass(frozen=True, kw_only=True)
class HostArray:
    """One array as it is stored, and what it was.

    Args:
        stored: C-ordered numpy array that belongs to the copy alone.
        shape, dtype: of the original; they differ from the stored array's for typed random keys only.
        key_impl: random number generator of a typed key, else None.
    """

    stored: np.ndarray
    shape: tuple[int, ...]
    dtype: str
    key_impl: str | None = None


class HostBuffers:
    """Takes host copies, reusing the memory of the copy before: take the next one only when that is no longer read.

    Args:
        changes: is shown each array beside the copy before.

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
        """Copies of every array, by item and path.

        Raises:
            CheckpointError: a value is no array, or not all of it is on this process's devices.
        """
        for named in items.values():
            for value in named.values():
                if _is_jax_array(value) and value.is_fully_addressable and not _is_key(value):
                    value.copy_to_host_async()
        copies = {
            item: {path: self._copy(item, path, value) for path, value in named.items()}
            for item, named in items.items()
        }
        self._buffers = {(item, path): host.stored for item, named in copies.items() for path, host in named.items()}
        return copies

    def begin_full(self) -> None:
        """The copy just taken is of a full save."""
        self._changes.begin(self._buffers)

    def release(self) -> None:
        """Gives the memory back."""
        self._buffers = {}

    def _copy(self, item: str, path: str, value: Any) -> HostArray:
        if not _is_jax_array(value):
            host = _as_numpy(item, path, value)
            self._changes.look((item, path), self._buffers.get((item, path)), host)
            stored = self._own(item, path, host)
            return HostArray(stored=stored, shape=stored.shape, dtype=stored.dtype.name)
        if not (value.is_fully_addressable or value.is_fully_replicated):
            raise CheckpointError(
                f"{item} {path!r} is spread over the devices of several processes ({value.sharding}). A store that "
                "all of them save to together holds such arrays: CheckpointStore(..., processes=...)."
            )
        if _is_key(value):
            import jax

            stored = self._own(item, path, np.asarray(jax.random.key_data(value)))
            key_impl = str(jax.random.key_impl(value))
            return HostArray(stored=stored, shape=value.shape, dtype=value.dtype.name, key_impl=key_impl)
        host = np.asarray(value)
        self._changes.look((item, path), self._buffers.get((item, path)), host)
        on_host_already = any(device.platform == "cpu" for device in value.sharding.device_set)
        stored = self._own(item, path, host) if on_host_already or not host.flags.c_contiguous else host
        return HostArray(stored=stored, shape=stored.shape, dtype=stored.dtype.name)

    def _own(self, item: str, path: str, host: np.ndarray) -> np.ndarray:
        buffer = self._buffers.get((item, path))
        if buffer is None or buffer.shape != host.shape or buffer.dtype != host.dtype or not buffer.flags.writeable:
            return np.array(host, order="C", copy=True)
        np.copyto(buffer, host)
        return buffer


def _as_numpy(item: str, path: str, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind in "OSUMm" or array.dtype.fields is not None:
        raise CheckpointError(
            f"{item} {path!r} is {type(value).__name__} of dtype {array.dtype}; a checkpoint holds numeric and boolean "
            "arrays. Convert it, or keep it as JSON in a hook's state."
        )
    return array


def _is_jax_array(value: Any) -> bool:
    jax = sys.modules.get("jax")  # nothing is a jax array before somebody imported jax
    return jax is not None and isinstance(value, jax.Array)


def _is_key(value: Any) -> bool:
    import jax

    return jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key)
