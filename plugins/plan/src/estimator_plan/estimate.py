"""The roofline of a traced step before it is compiled, from the shardings of its variables alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from estimator_core.backends import Topology
from estimator_core.lowering import TracedStep
from estimator_plan.collectives import Collective, groups_over, sent_by_ring
from estimator_plan.flops import count_flops
from estimator_plan.layout import Layout, layout_of
from estimator_plan.memory import bytes_of, in_host_memory, on_one_device
from estimator_plan.roofline import Roofline, roofline


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The estimated cost of a step, used to choose which meshes to compile.

    Attributes:
        times: the roofline of the step.
        state_bytes: the bytes of variables and slots on one device.
        fits: whether the state alone fits.
    """

    times: Roofline
    state_bytes: int
    fits: bool

    @property
    def rank(self) -> tuple[bool, float, float, int]:
        """The sort key of candidates.

        It contains whether the state fits, the time of the busiest resource, the sum of all, and the state.
        """
        return (not self.fits, self.times.at_least or 0.0, self.times.at_most or 0.0, self.state_bytes)


def estimate(step: TracedStep, topology: Topology) -> Estimate:
    """Returns the roofline of a step from the shardings of its variables; nothing is compiled.

    - A variable that is split over axes of the batch is gathered for two passes, and its gradient is scattered. Other
      axes of the batch reduce the gradient of each part.
    - A variable that is split over other axes sends the activations of one of its products, reduced once.
    - Each device reads and writes its state, and its gradients twice.

    Args:
        step: the traced step.
        topology: the devices.
    """
    layout, batch_axes = layout_of(step.placement.mesh, topology), step.placement.batch_axes
    flops = count_flops(step.traced.jaxpr)
    variables = {name: each for name, each in step.state.variables.items() if not in_host_memory(each)}
    tokens = _tokens(flops.total, variables)
    found: list[Collective] = []
    for variable in variables.values():
        split = _split_axes(variable.sharding.spec)
        inner = tuple(axis for axes in split for axis in axes if axis not in batch_axes)
        outer = tuple(axis for axes in split for axis in axes if axis in batch_axes)
        rest = tuple(axis for axis in batch_axes if axis not in outer)
        size = bytes_of(variable.shape, variable.dtype) // _parts(layout, inner)
        found += _collective(layout, "all-gather", outer, 2 * size)
        found += _collective(layout, "reduce-scatter", outer, size)
        found += _collective(layout, "all-reduce", rest, size // _parts(layout, outer))
        lengths = (length for length, axes in zip(variable.shape, split, strict=False) if set(axes) & set(inner))
        width = math.prod(variable.shape) // math.prod(lengths) if inner else 0
        rows = tokens / step.placement.batch_parts
        found += _collective(layout, "all-reduce", inner, int(rows * width) * variable.dtype.itemsize)
    held = on_one_device(step.carried)
    gradients = on_one_device(variables)
    devices = step.placement.mesh.size
    busy = devices if step.examples % step.placement.batch_parts == 0 else devices // step.placement.batch_parts
    times = roofline(flops.by_dtype, 2 * held + 4 * gradients, found, topology.figures, busy)
    return Estimate(times=times, state_bytes=held, fits=held <= topology.figures.memory_bytes)


def _tokens(flops: float, variables: Mapping[str, Any]) -> float:
    """Returns the rows that each variable processes: a product and its two gradients need six operations per weight."""
    weights = sum(math.prod(each.shape) for each in variables.values() if len(each.shape) > 1)
    return flops / (6 * weights) if weights else 0.0


def _collective(layout: Layout, kind: str, axes: tuple[str, ...], payload: int) -> list[Collective]:
    size = _parts(layout, axes)
    if size == 1 or not payload:
        return []
    return [
        Collective(
            kind=kind,
            group_size=size,
            axes=axes,
            crosses_groups=layout.crosses(groups_over(layout.axes, axes)),
            count=1,
            payload_bytes=payload,
            sent_bytes=sent_by_ring(kind, payload, size),
        )
    ]


def _split_axes(spec: Any) -> list[tuple[str, ...]]:
    """Returns the axes of the mesh by which each axis of a variable is split."""
    return [(entry,) if isinstance(entry, str) else tuple(entry or ()) for entry in spec]


def _parts(layout: Layout, axes: tuple[str, ...]) -> int:
    return math.prod(layout.axes[axis] for axis in axes)
