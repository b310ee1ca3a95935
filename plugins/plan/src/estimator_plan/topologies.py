"""Reads `--topology` and `--mesh`, and finds the backend that knows the topology."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from estimator_core.backends import Topology, TopologyBackend
from estimator_core.errors import ArgumentError

_TOPOLOGY = re.compile(r"(?:(\d+)\*)?([a-z][a-z0-9]*?)(?::|x(?=\d+$))(\d+(?:x\d+)*)")
_GIVEN_BY = (
    "TPU topologies (v5e:4x4) come with estimator-backends-tpu, GPU topologies (h100x8) with estimator-backends-gpu."
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A parsed topology.

    Attributes:
        family: the name of the family: "v5e", "h100", ...
        shape: the shape of one slice.
        slices: the number of equal slices, which only a network joins.
    """

    family: str
    shape: tuple[int, ...]
    slices: int = 1


def parse_topology(text: str) -> Wanted:
    """Parses a topology as users write it.

    Args:
        text: `FAMILY:SHAPE`, or `FAMILYxN` for N devices. A prefix `S*` means S slices of them.

    Raises:
        ArgumentError: the text has another form.

    Example:
        >>> parse_topology("v5e:4x4"), parse_topology("h100x8").shape, parse_topology("2*v5p:2x2x1").slices
        (Wanted(family='v5e', shape=(4, 4), slices=1), (8,), 2)
    """
    matched = _TOPOLOGY.fullmatch(text)
    shape = () if matched is None else tuple(int(size) for size in matched[3].split("x"))
    slices = int(matched[1] or 1) if matched is not None else 0
    if matched is None or not all(shape) or not slices:
        raise ArgumentError(
            f"topology {text!r} has no known form: write FAMILY:SHAPE, for example v5e:4x4 or v5p:4x4x4, FAMILYxN, "
            "for example h100x8, or SLICES*FAMILY:SHAPE, for example 2*v5e:4x4."
        )
    return Wanted(family=matched[2], shape=shape, slices=slices)


def parse_mesh(text: str) -> dict[str, int]:
    """Parses a mesh as users write it: `data=8,model=4`. -1 stands for the rest.

    Raises:
        ArgumentError: the text has another form.

    Example:
        >>> parse_mesh("data=-1,model=4")
        {'data': -1, 'model': 4}
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        matched = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*(-1|[1-9]\d*)\s*", part)
        if matched is None or matched[1] in sizes:
            raise ArgumentError(
                f"mesh {text!r} has no known form: write AXIS=SIZE,AXIS=SIZE with each axis once, for example "
                "data=-1,model=4."
            )
        sizes[matched[1]] = int(matched[2])
    return sizes


@dataclass(frozen=True, kw_only=True)
class Found:
    """A topology, and the backend that provides its devices."""

    topology: Topology
    backend: TopologyBackend


def find_topology(text: str, get: Callable[[str], Any], names: Sequence[str]) -> Found:
    """Returns the topology with the installed backend that knows it.

    Args:
        text: the topology, as users write it.
        get: the function that returns the component of a backend by name: a class, or a function that makes the
            backend.
        names: the backends that exist.

    Raises:
        ArgumentError: no installed backend knows the family, or the shape does not exist.
    """
    wanted = parse_topology(text)
    known: dict[str, TopologyBackend] = {}
    for name in names:
        component = get(name)
        backend = component()
        if isinstance(backend, TopologyBackend):
            families = dict.fromkeys(backend.topology_families(), backend)
            if wanted.family in families and wanted.family in known:
                raise ArgumentError(f"Several backends know the topology {text!r}. Block the plugin of all but one.")
            known.update(families)
    if wanted.family not in known:
        raise ArgumentError(
            f"No installed backend knows the topology {text!r}. Known families: {sorted(known) or 'none'}. {_GIVEN_BY}"
        )
    backend = known[wanted.family]
    return Found(topology=_slices(backend.topology(wanted.family, wanted.shape), wanted.slices), backend=backend)


def _slices(one: Topology, count: int) -> Topology:
    """Returns equal slices of one topology, which only a network joins.

    Raises:
        ArgumentError: the devices of the topology already form groups.
    """
    if count == 1:
        return one
    if one.figures.group_size is not None:
        raise ArgumentError(
            f"{one.name} has no slices: its machines are joined by a network already. Write the number of machines "
            "before the devices of each, for example h100:2x8."
        )
    return dataclasses.replace(
        one,
        name=f"{count}*{one.name}",
        device_count=count * one.device_count,
        host_count=count * one.host_count,
        slice_count=count,
    )
