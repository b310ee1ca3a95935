"""Writes files as torch.save does, without torch: a zip of a pickle and of storages."""

import io
import pickle
import sys
import types
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

STORAGES = {"float32": "FloatStorage", "float16": "HalfStorage", "bfloat16": "BFloat16Storage", "int64": "LongStorage"}


class _Storage:
    def __init__(self, kind: type, data: np.ndarray, key: str) -> None:
        self.kind, self.data, self.key = kind, data, key


def _modules() -> dict[str, Any]:
    """Stand-ins for the torch modules, as far as a pickle names them."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    def _rebuild_tensor_v2(*given: Any) -> None: ...

    def _rebuild_parameter(*given: Any) -> None: ...

    for function in (_rebuild_tensor_v2, _rebuild_parameter):
        function.__module__, function.__qualname__ = "torch._utils", function.__name__
        setattr(utils, function.__name__, function)
    for name in STORAGES.values():
        setattr(torch, name, type(name, (), {"__module__": "torch"}))
    return {"torch": torch, "torch._utils": utils}


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _Storage):
            return ("storage", obj.kind, obj.key, "cpu", obj.data.size)
        return None


class _Pickled:
    def __init__(self, *reduced: Any) -> None:
        self.reduced = reduced

    def __reduce__(self) -> Any:
        return self.reduced


def write_torch_file(path: Path, arrays: Mapping[str, np.ndarray], jump: int | None = None, **more: Any) -> Path:
    """Writes a state dict. A transposed array has the strides of a transposed tensor.

    `jump` replaces the first stride of all arrays. `more` is pickled unchanged.
    """
    modules, storages = _modules(), []
    state: OrderedDict[str, Any] = OrderedDict()
    for name, array in arrays.items():
        base = array if array.flags.c_contiguous else array.T
        kind = getattr(modules["torch"], STORAGES[array.dtype.name])
        storages.append(_Storage(kind, np.concatenate([np.zeros(3, base.dtype), base.ravel()]), str(len(storages))))
        strides = tuple(stride // array.itemsize for stride in array.strides)
        strides = strides if jump is None else (jump, *strides[1:])
        given = (storages[-1], 3, array.shape, strides, False, OrderedDict())
        tensor = _Pickled(modules["torch._utils"]._rebuild_tensor_v2, given)
        parameter = (modules["torch._utils"]._rebuild_parameter, (tensor, True, OrderedDict()))
        state[name] = _Pickled(*parameter) if len(storages) % 2 else tensor
    state.update(more)
    buffer, before = io.BytesIO(), {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        _Pickler(buffer, 2).dump(state)
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pytorch_model/data.pkl", buffer.getvalue())
        archive.writestr("pytorch_model/byteorder", "little")
        for one in storages:
            archive.writestr(f"pytorch_model/data/{one.key}", one.data.tobytes())
    return path


def all_kinds() -> dict[str, np.ndarray]:
    """An array of each dtype, a transposed one, a scalar and an empty one."""
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    return {
        "plain": numbers,
        "transposed": numbers.T,
        "half": numbers.astype(np.float16),
        "brain": numbers.astype(jnp.bfloat16),
        "ids": np.arange(4),
        "scalar": np.float32(2.5).reshape(()),
        "empty": np.zeros((0, 3), np.float32),
    }
