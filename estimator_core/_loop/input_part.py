"""Which part of an input a process reads."""

from __future__ import annotations

from estimator_core._backends import Devices
from estimator_core._inputs import InputContext


def input_context(devices: Devices) -> InputContext:
    """The context that input functions of these devices are given."""
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
