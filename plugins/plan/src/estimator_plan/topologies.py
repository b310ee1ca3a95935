"""`--topology` and `--mesh`, read; and the backend that knows the topology."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from estimator_core.backends import Topology, TopologyBackend
from estimator_core.errors import ArgumentError

_TOPOLOGY = re.compile(r"([a-z][a-z0-9]*?)(?::|x(?=\d+$))(\d+(?:x\d+)*)")
_GIVEN_BY = (
    "TPU topologies (v5e:4x4) come with estimator-backends-tpu, GPU topologies (h100x8) with estimator-backends-gpu."
)


def parse_topology(text: str) -> tuple[str, tuple[int, ...]]:
    """The family and the shape of a topology as users write it.

    Args:
        text: `FAMILY:SHAPE`, or `FAMILYxN` for N devices.

    Raises:
        ArgumentError: it has another form.

    Example:
        >>> parse_topology("v5e:4x4"), parse_topology("h100x8"), parse_topology("v5p:2x2x1")
        (('v5e', (4, 4)), ('h100', (8,)), ('v5p', (2, 2, 1)))
    """
    matched = _TOPOLOGY.fullmatch(text)
    shape = () if matched is None else tuple(int(size) for size in matched[2].split("x"))
    if matched is None or not all(shape):
        raise ArgumentError(
            f"topology {text!r} has no known form: write FAMILY:SHAPE, for example v5e:4x4 or v5p:4x4x4, or FAMILYxN, "
            "for example h100x8."
        )
    return matched[1], shape


def parse_mesh(text: str) -> dict[str, int]:
    """A mesh as users write it: `data=8,model=4`; -1 is the rest.

    Raises:
        ArgumentError: it has another form.

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
    """A topology, and the backend that can lend its devices."""

    topology: Topology
    backend: TopologyBackend


def find_topology(text: str, get: Callable[[str], Any], names: Sequence[str]) -> Found:
    """Asks the installed backends for a topology.

    Args:
        text: as users write it.
        get: gives the component of a backend's name: a class, or a function that makes the backend.
        names: the backends that exist.

    Raises:
        ArgumentError: no installed backend knows the family, or there is no such shape.
    """
    family, shape = parse_topology(text)
    known: dict[str, TopologyBackend] = {}
    for name in names:
        component = get(name)
        backend = component()
        if isinstance(backend, TopologyBackend):
            known.update(dict.fromkeys(backend.topology_families(), backend))
    if family not in known:
        raise ArgumentError(
            f"No installed backend knows the topology {text!r}. Known families: {sorted(known) or 'none'}. {_GIVEN_BY}"
        )
    return Found(topology=known[family].topology(family, shape), backend=known[family])
