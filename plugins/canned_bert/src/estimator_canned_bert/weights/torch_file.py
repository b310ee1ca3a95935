"""The arrays of a file that torch.save wrote, read without torch. No code of the file runs."""

from __future__ import annotations

import collections
import io
import math
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from estimator_core.errors import ArgumentError, CheckpointCorruptError

_DTYPES: Mapping[str, np.dtype[Any]] = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "BFloat16Storage": np.dtype(jnp.bfloat16),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
    "ShortStorage": np.dtype("<i2"),
    "CharStorage": np.dtype("i1"),
    "ByteStorage": np.dtype("u1"),
    "BoolStorage": np.dtype("?"),
}


class _Array(NamedTuple):
    """A part of a storage, as the file describes it."""

    storage: np.ndarray
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_torch_file(path: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of a state dict by name.

    The file holds a pickle. It may name an ordered dict and the functions that describe a tensor. Any other name is
    refused before an import.

    Raises:
        ArgumentError: the file names other code, holds values that are not arrays, or is older than torch 1.6.
        CheckpointCorruptError: the file cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            root = next((name[: -len("data.pkl")] for name in archive.namelist() if name.endswith("/data.pkl")), None)
            if any(one.compress_type != zipfile.ZIP_STORED for one in archive.infolist()):
                raise ArgumentError(f"{path} is compressed, which torch.save does not do.")
            if root is None:
                raise ArgumentError(f"{path} has no data.pkl: torch.save did not write it.")
            if f"{root}byteorder" in archive.namelist() and archive.read(f"{root}byteorder") != b"little":
                raise ArgumentError(f"{path} is big-endian. Save it on a little-endian machine.")
            found = _Unpickler(archive, root, path).load()
        if not isinstance(found, dict) or not all(isinstance(one, _Array) for one in found.values()):
            raise ArgumentError(
                f"{path} does not hold a dict of tensors. Save model.state_dict(), or use safe_serialization=True."
            )
        return {str(name): _array(one) for name, one in found.items()}
    except (ArgumentError, CheckpointCorruptError):
        raise
    except Exception as error:  # a damaged pickle may raise any exception
        raise CheckpointCorruptError(f"{path} cannot be read: {error!r}. Download it again.") from error


class _Unpickler(pickle.Unpickler):
    """Unpickles a few known names, and imports nothing."""

    def __init__(self, archive: zipfile.ZipFile, root: str, path: Path) -> None:
        super().__init__(io.BytesIO(archive.read(f"{root}data.pkl")))
        self._archive, self._root, self._path = archive, root, path

    def find_class(self, module: str, name: str, /) -> Any:
        known = {  # functions of this call alone: a pickle may set attributes of the objects that it names
            ("collections", "OrderedDict"): collections.OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): lambda *given: _tensor(*given),
            ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
        }
        if (module, name) in known:
            return known[module, name]
        if module == "torch" and name in _DTYPES:
            return _DTYPES[name]
        raise ArgumentError(
            f"{self._path} names {module}.{name}, which is not a tensor: loading it could run code. "
            "Save the model again with safe_serialization=True."
        )

    def persistent_load(self, pid: Any, /) -> np.ndarray:
        _, dtype, key, _, size = pid
        data = np.frombuffer(self._archive.read(f"{self._root}data/{key}"), dtype)
        if len(data) != size:
            raise CheckpointCorruptError(f"{self._path}: the storage {key} has {len(data)} numbers, not {size}.")
        return data


def _tensor(storage: np.ndarray, offset: int, shape: Any, strides: Any, *_: Any) -> _Array:
    return _Array(storage, offset, tuple(shape), tuple(strides))


def _array(one: _Array) -> np.ndarray:
    """Returns the values of a tensor. It never reads outside of its storage."""
    storage, offset, shape, strides = one
    count = math.prod(shape)
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) if count else offset
    if min((offset, *shape, *strides), default=0) < 0 or count > len(storage) or (count and last >= len(storage)):
        raise ValueError(f"a tensor of shape {shape} is not within its storage of {len(storage)}")
    steps = tuple(stride * storage.itemsize for stride in strides)
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, steps).copy()
