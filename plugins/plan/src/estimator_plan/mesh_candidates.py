"""Chooses the meshes that are worth compiling among all meshes, by a roofline that needs no compiler."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from estimator_core.backends import Topology
from estimator_core.errors import ArgumentError, BackendUnavailableError
from estimator_core.estimator import Estimator
from estimator_core.inputs import Batch
from estimator_core.lowering import trace_step
from estimator_plan.estimate import Estimate, estimate
from estimator_plan.meshes import free_meshes, named_axes
from estimator_plan.preset import Preset
from estimator_plan.stand_ins import stand_ins
from estimator_plan.topologies import Found

#: The largest number of meshes that are traced. Meshes that split layers among the fewest devices come first.
TRACED_AT_MOST = 64
#: The largest number of devices that share a layer.
_INSIDE = 8


def likely_meshes(
    estimator: Estimator,
    batch: Batch,
    found: Found,
    known: Sequence[Preset],
    *,
    batch_size: int | None,
    count: int,
) -> list[Preset]:
    """Returns the most promising meshes that are not among the known ones, the best first.

    Each mesh is traced, up to `TRACED_AT_MOST`, and ranked by `estimate`.

    Args:
        estimator: the Estimator, for its model_fn, params and RunConfig.
        batch: one batch of its training input.
        found: the topology and its backend.
        known: the presets that are compiled anyway.
        batch_size: the number of examples of the global batch. None: the size of the batch.
        count: the number of meshes to choose.
    """
    if not count:
        return []
    topology = found.topology
    taken = [_ways(preset, topology) for preset in known]
    tried: list[Preset] = []
    for preset in free_meshes(topology, named_axes(estimator.config)):
        ways = _ways(preset, topology)
        if _inside(preset) <= _INSIDE and ways not in taken:
            tried.append(preset)
            taken.append(ways)
    tried = sorted(tried, key=_inside)[:TRACED_AT_MOST]
    ranked = ((preset, _estimated(estimator, batch, found, preset, batch_size)) for preset in tried)
    best = sorted(((guess.rank, place, preset) for place, (preset, guess) in enumerate(ranked) if guess is not None))
    return [preset for _, _, preset in best[:count]]


def _ways(preset: Preset, topology: Topology) -> tuple[Mapping[str, int], Any]:
    """Returns the effect of a preset: its mesh without axes of one device, and its rule with the axes named."""
    fixed = math.prod(size for size in preset.mesh.values() if size != -1)
    sizes = {axis: topology.device_count // fixed if size == -1 else size for axis, size in preset.mesh.items()}
    mesh = {axis: size for axis, size in sizes.items() if size > 1}
    rule = preset.sharded
    over = () if rule is None else ("data", "fsdp") if rule.axes is None else rule.axes
    named = tuple(axis for axis in ((over,) if isinstance(over, str) else over) if axis in mesh)
    return mesh, (named, rule.slots_only) if rule is not None and named else None


def _inside(preset: Preset) -> int:
    """Returns the number of devices that share a layer."""
    return math.prod(size for axis, size in preset.mesh.items() if axis not in ("data", "fsdp"))


def _estimated(
    estimator: Estimator, batch: Batch, found: Found, preset: Preset, batch_size: int | None
) -> Estimate | None:
    """Returns the estimate of a preset, or None if the model refuses its mesh."""
    try:
        devices = found.backend.topology_devices(found.topology)
    except BackendUnavailableError:
        devices = stand_ins(found.topology)
    changed = preset.run_config(estimator.config.partition_rules)
    config = estimator.config.replace(backend="auto", debug=False, **changed)
    try:
        step = trace_step(estimator.model_fn, config, batch, devices, batch_size=batch_size)
    except ArgumentError:
        return None
    return estimate(step, found.topology)
