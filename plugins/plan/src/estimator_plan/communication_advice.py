"""Advice for a step whose devices send more than its variables explain."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax

from estimator_core.lowering import TracedStep
from estimator_plan.collectives import Collective
from estimator_plan.memory import gib

#: Below this ratio to the bytes of the preset, activations and metrics explain the difference.
_WORTH_SAYING = 1.5


def advice_to_send_less(collectives: Sequence[Collective] | None, step: TracedStep) -> tuple[str, ...]:
    """Returns a line if the devices send much more than fully sharded variables need, otherwise nothing.

    Args:
        collectives: the collectives of the compiled step, or None if nothing was compiled.
        step: the traced step.
    """
    devices = step.placement.mesh.size
    if collectives is None or devices == 1:
        return ()
    sent = sum(each.sent_bytes for each in collectives)
    preset = sent_by_fsdp(step, devices)
    if sent <= _WORTH_SAYING * preset:
        return ()
    return (
        f"A device sends {gib(sent)} in a step. Fully sharded variables explain {gib(preset)}: each is gathered for "
        "two passes, and its gradient is scattered. ec.with_logical_constraint and ec.gathered keep activations where "
        "they are, and --search compares presets.",
    )


def sent_by_fsdp(step: TracedStep, devices: int) -> int:
    """Returns the bytes that a device sends if each variable is gathered twice, and each gradient is scattered.

    Args:
        step: the traced step.
        devices: the number of devices that share the variables.
    """
    sizes = (math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(step.state.variables))
    return 3 * sum(sizes) * (devices - 1) // devices
