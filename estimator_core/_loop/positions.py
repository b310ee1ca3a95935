"""Which part of an input a process reads, and the position of each part, also for another number of processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimator_core._backends import Devices
from estimator_core._cluster.processes import gather
from estimator_core._inputs import InputContext, InputPosition
from estimator_core.coordinator import Coordinator


def input_context(devices: Devices) -> InputContext:
    """The context for input functions of these devices."""
    placement = devices.placement
    if not placement.spans_processes:
        return InputContext(num_replicas_in_sync=placement.batch_parts)
    part, parts = placement.input_part(devices.processes.index)
    return InputContext(
        num_input_pipelines=parts,
        input_pipeline_id=part,
        num_replicas_in_sync=placement.batch_parts,
        parts=placement.parts[devices.processes.index],
    )


_PARTS = "parts"


def positions_json(
    position: InputPosition | None, processes: Coordinator, pipelines: Sequence[Sequence[int]]
) -> dict[str, Any] | None:
    """The position of a checkpoint: the chief's, and with several processes that of every part of the input."""
    own = None if position is None else position.to_json()
    if processes.count == 1:
        return own
    told = gather(processes, "position", own)
    parts = [told[members[0]] for members in pipelines]
    return None if parts[0] is None else {**parts[0], _PARTS: parts}


def position_of(saved: Mapping[str, Any], context: InputContext) -> InputPosition:
    """The position of one share of the input.

    The position of all processes together serves any number of them. An input that divides itself continues with the
    same number of processes. With another number it finds the position of another share, starts again and says why.
    """
    parts: list[InputPosition] = [InputPosition.from_json(part) for part in saved.get(_PARTS) or [saved]]
    return parts[context.input_pipeline_id] if len(parts) == context.num_input_pipelines else parts[0]
