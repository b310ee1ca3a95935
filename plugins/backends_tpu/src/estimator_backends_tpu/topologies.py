"""Slices that `estimator plan` can compile for, on a machine without a TPU."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from estimator_backends_tpu.devices import FIGURES
from estimator_backends_tpu.probe import INSTALL, libtpu_installed
from estimator_core.backends import Topology
from estimator_core.errors import ArgumentError, BackendUnavailableError

_2D = ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
_CHIPS_OF_A_HOST = 4
_COMPILE_ONLY = {
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
}


@dataclass(frozen=True, kw_only=True)
class Family:
    """A generation: its device kind in jax, and the shapes of its slices. None as shapes: cuboids, see `is_cuboid`."""

    kind: str
    shapes: tuple[tuple[int, ...], ...] | None


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "v5e": Family(kind="TPU v5 lite", shapes=_2D),
        "v5p": Family(kind="TPU v5", shapes=None),
        "v6e": Family(kind="TPU v6 lite", shapes=_2D),
    }
)


def is_cuboid(shape: Sequence[int]) -> bool:
    """Returns whether a v5p slice exists: three sides, each 1, 2 or a multiple of 4, at most 16 by 16 by 24.

    Example:
        >>> [is_cuboid(shape) for shape in [(2, 2, 1), (4, 4, 4), (2, 2, 4), (4, 4), (3, 4, 4), (4, 20, 20)]]
        [True, True, True, False, False, False]
    """
    fits = len(shape) == 3 and all(1 <= side <= most for side, most in zip(sorted(shape), (16, 16, 24), strict=True))
    return fits and all(side in (1, 2) or side % 4 == 0 for side in shape)


def topology(family: str, shape: tuple[int, ...]) -> Topology:
    """Returns the slice of a family and shape.

    Raises:
        ArgumentError: the slice does not exist. The message lists the existing ones.
    """
    known = FAMILIES[family]
    name = f"{family}:{'x'.join(map(str, shape))}"
    if known.shapes is None and not is_cuboid(shape):
        raise ArgumentError(
            f"There is no topology {name!r}: {family} slices have three sides, each 1, 2 or a multiple of 4, for "
            f"example {family}:2x2x1, {family}:2x2x4, {family}:4x4x4."
        )
    if known.shapes is not None and shape not in known.shapes:
        names = ", ".join("x".join(map(str, sides)) for sides in known.shapes)
        raise ArgumentError(f"There is no topology {name!r}: {family} slices are {names}.")
    count = math.prod(shape)
    hosts = max(1, count // _CHIPS_OF_A_HOST)
    return Topology(name=name, device_count=count, host_count=hosts, figures=FIGURES[known.kind])


def topology_devices(wanted: Topology) -> Sequence[Any]:
    """Returns devices to compile for.

    Raises:
        BackendUnavailableError: libtpu is not installed, or it refuses the topology.
    """
    if not libtpu_installed():
        raise BackendUnavailableError(f"compiling for {wanted.name} needs libtpu (no TPU): {INSTALL}.")
    from jax.experimental import topologies

    with _compile_only():
        try:
            one = wanted.name.rpartition("*")[2]
            slices = {"num_slices": wanted.slice_count} if wanted.slice_count > 1 else {}
            found = topologies.get_topology_desc(platform="tpu", topology_name=one, **_less_than_a_host(one), **slices)
        except Exception as error:
            raise BackendUnavailableError(f"libtpu refuses {wanted.name}: {error}") from error
        return list(found.devices)


def _less_than_a_host(name: str) -> dict[str, Any]:
    """Returns the bounds of a slice that is smaller than a host. libtpu assumes that a host holds 2 by 2 chips."""
    sides = [int(side) for side in name.partition(":")[2].split("x")]
    if math.prod(sides) >= _CHIPS_OF_A_HOST:
        return {}
    return {"chips_per_host_bounds": [*sides, 1][:3]}


@contextlib.contextmanager
def _compile_only() -> Generator[None]:
    """Lets libtpu compile without running programs: it does not inspect the machine, and need not be alone on it."""
    absent = [name for name in _COMPILE_ONLY if name not in os.environ]
    os.environ.update({name: _COMPILE_ONLY[name] for name in absent})
    try:
        yield
    finally:
        for name in absent:
            os.environ.pop(name, None)
