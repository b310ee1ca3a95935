"""Lists every mesh of a topology over the axes that a model uses, with the rules that it allows, for a search."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from estimator_core.backends import BATCH_AXES, STAGES, Topology
from estimator_core.config import FullySharded, RunConfig
from estimator_plan.preset import Preset


def named_axes(config: RunConfig) -> tuple[str, ...]:
    """Returns the axes that a RunConfig names besides those of the batch, in its mesh, its rules and its specs.

    Stages of a pipeline are not among them, because they have separate presets.

    Example:
        >>> named_axes(RunConfig(mesh={"data": -1, "model": 2}, logical_axis_rules={"expert": ("expert", "data")}))
        ('model', 'expert')
    """
    return tuple(name for name in _named(config) if name not in (*BATCH_AXES, STAGES))


def has_stages(config: RunConfig) -> bool:
    """Returns whether a RunConfig names stages of a pipeline.

    Example:
        >>> has_stages(RunConfig(partition_rules=[("layers/.*", ("stage",))]))
        True
    """
    return STAGES in _named(config)


def _named(config: RunConfig) -> dict[str, None]:
    """Returns all axes of the mesh that a RunConfig names."""
    specs = [spec.base if isinstance(spec, FullySharded) else spec for _, spec in config.partition_rules]
    entries = [config.mesh or (), *(_flat(entry) for entry in config.logical_axis_rules.values())]
    for name in (name for spec in specs for name in _flat(spec)):
        entries.append(() if name in config.logical_axis_rules else (name,))
    return dict.fromkeys(name for each in entries for name in each)


def factorisations(count: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yields all ordered tuples of `parts` numbers whose product is `count`.

    Example:
        >>> list(factorisations(4, 2))
        [(1, 4), (2, 2), (4, 1)]
    """
    if parts == 1:
        yield (count,)
        return
    for first in (size for size in range(1, count + 1) if count % size == 0):
        for rest in factorisations(count // first, parts - 1):
            yield (first, *rest)


def free_meshes(topology: Topology, axes: Sequence[str]) -> list[Preset]:
    """Returns every mesh of all devices over `data`, `fsdp` and further axes, once with each rule that differs on it.

    Variables stay whole, or are split over `fsdp`, either entirely or only in their slots. `data` joins the slices, so
    its size is a multiple of their number.

    Args:
        topology: the devices.
        axes: the further axes, see `named_axes`.

    Example:
        >>> from estimator_core.backends import DeviceFigures
        >>> figures = DeviceFigures(
        ...     kind="a", memory_bytes=1, peak_flops={}, memory_bandwidth=1, link_bandwidth=1, source=""
        ... )
        >>> topology = Topology(name="a:4", device_count=4, host_count=1, figures=figures)
        >>> [preset.name for preset in free_meshes(topology, ())]
        ['data=4', 'data=4 slots', 'data=2 fsdp=2', 'data=2 fsdp=2 slots', 'fsdp=4']
    """
    found: list[Preset] = []
    for sizes in factorisations(topology.device_count, len(BATCH_AXES) + len(axes)):
        data, fsdp, *inner = sizes
        if data % topology.slice_count:
            continue
        mesh = {"data": data, "fsdp": fsdp, **dict(zip(axes, inner, strict=True))}
        found += [_preset(mesh, rule) for rule in _rules(data, fsdp)]
    return sorted(found, key=lambda preset: (-preset.mesh.get("data", 1), preset.mesh.get("fsdp", 1)))


def _rules(data: int, fsdp: int) -> list[FullySharded | None]:
    if fsdp == 1:
        return [None, FullySharded(slots_only=True)] if data > 1 else [None]
    split = FullySharded("fsdp")
    # Without a second axis of the batch, split slots are the same as those of a mesh with only `data`.
    return [split, FullySharded("fsdp", slots_only=True)] if data > 1 else [split]


def _preset(mesh: Mapping[str, int], rule: FullySharded | None) -> Preset:
    kept = {axis: size for axis, size in mesh.items() if size > 1} or {"data": 1}
    if "data" not in kept:
        kept = {"data": 1, **kept}
    name = " ".join(f"{axis}={size}" for axis, size in kept.items() if size > 1) or "data=1"
    return Preset(
        name=f"{name} slots" if rule is not None and rule.slots_only else name,
        mesh=kept,
        sharded=rule,
        sends=_sends(kept, rule),
    )


def _sends(mesh: Mapping[str, int], rule: FullySharded | None) -> str:
    """Returns the data that a device sends in a step, in words."""
    parts: list[str] = []
    inner = math.prod(size for axis, size in mesh.items() if axis not in BATCH_AXES)
    of = "" if inner == 1 else f" of one part in {inner}"
    if inner > 1:
        parts.append("the activations between the devices that share a layer")
    if rule is not None and not rule.slots_only:
        parts.append(f"each variable{of} for two passes and its gradient, among {mesh['fsdp']} devices")
        if mesh["data"] > 1:
            parts.append(f"the gradients of one part in {inner * mesh['fsdp']} among {mesh['data']}")
    elif rule is not None:
        parts.append(f"each gradient{of} to where its slots are, and each variable back")
    else:
        parts.append(f"each gradient{of}, reduced once")
    return ", and ".join(parts)


def _flat(entry: Any) -> tuple[str, ...]:
    """Returns the names in a spec, or in one of its entries."""
    if entry is None:
        return ()
    if isinstance(entry, str):
        return (entry,)
    return tuple(itertools.chain.from_iterable(_flat(each) for each in entry))
