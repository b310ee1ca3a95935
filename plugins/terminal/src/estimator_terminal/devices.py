"""Checks whether each device of this process computes correctly, and all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

#: The side of the matrices. Their products are exact in float32, and in one bfloat16 pass.
_SIDE = 512
#: The number of bytes that are written to a device and read back.
_BYTES = 64 << 20


def faults_of(devices: Sequence[Any]) -> Iterator[str]:
    """Yields each device that computes or stores wrong values, and wrong collectives.

    Args:
        devices: the devices of this process.

    Example:
        >>> import jax
        >>> list(faults_of(jax.local_devices()))
        []
    """
    for device in devices:
        try:
            what = _computes(device) or _keeps(device)
        except Exception as error:  # any error of the runtime of a device is a fault of it
            what = f"fails: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        if what:
            yield f"{device} {what}"
    if len(devices) > 1:
        try:
            total = _summed(devices)
        except Exception as error:
            yield f"{len(devices)} devices together fail: {type(error).__name__}: {error}"
            return
        if total != sum(range(1, len(devices) + 1)):
            yield f"{len(devices)} devices together compute {total:g} as the sum of 1 to {len(devices)}"


def _computes(device: Any) -> str:
    import jax
    import numpy as np

    # Small whole numbers have the same sum in every order of summation.
    left = np.arange(_SIDE * _SIDE, dtype=np.float32).reshape(_SIDE, _SIDE) % 7 - 3
    right = left[::-1] % 5 - 2
    product = np.asarray(jax.jit(lambda a, b: a @ b)(jax.device_put(left, device), jax.device_put(right, device)))
    wrong = int((product != left @ right).sum())
    return f"computes {wrong} of {product.size} numbers of a product wrongly" if wrong else ""


def _keeps(device: Any) -> str:
    import jax
    import numpy as np

    values = np.random.default_rng(0).integers(0, 1 << 32, _BYTES // 4, dtype=np.uint32)
    changed = int((np.asarray(jax.jit(lambda x: ~x)(jax.device_put(values, device))) != ~values).sum())
    return f"returns {changed} of {values.size} numbers changed" if changed else ""


def _summed(devices: Sequence[Any]) -> float:
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.asarray(devices), ("each",))
    numbers = np.arange(1, len(devices) + 1, dtype=np.float32)
    split = jax.device_put(numbers, NamedSharding(mesh, PartitionSpec("each")))
    return float(jax.jit(lambda x: x.sum())(split))
