"""Compares the plans of presets and of other meshes: which one fits, and takes the shortest time by the roofline."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from estimator_core.backends import BATCH_AXES, STAGES
from estimator_core.errors import ArgumentError
from estimator_core.estimator import Estimator
from estimator_core.inputs import Batch
from estimator_plan.memory import gib
from estimator_plan.mesh_candidates import likely_meshes
from estimator_plan.meshes import has_stages
from estimator_plan.preset import Preset, Remat, pipeline_presets, presets, tensor_presets
from estimator_plan.tables import seconds_text, table
from estimator_plan.topologies import Found
from estimator_plan.training_plan import TrainingPlan, plan_training


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One way to split the step, and its plan.

    Attributes:
        preset: the preset that describes the split.
        plan: the plan of the step.
        dollars: the price of a million steps. None if no price was passed, or the time is not known.
    """

    preset: Preset
    plan: TrainingPlan
    dollars: float | None = None

    @property
    def seconds(self) -> float:
        """The bound by which candidates are ranked.

        A candidate that does not fit, or whose time is not known, comes last.
        """
        least = self.plan.times.at_least
        return float("inf") if self.plan.memory.shortfall or least is None else least

    @property
    def seconds_per_example(self) -> float:
        """The time by which candidates of different batch sizes are ranked."""
        return self.seconds / self.plan.examples

    @property
    def sent_bytes(self) -> int | None:
        """The bytes that each device sends in a step, or None if nothing was compiled."""
        found = self.plan.collectives
        return None if found is None else sum(each.sent_bytes for each in found)


def search_plans(
    estimator: Estimator,
    batch: Batch,
    found: Found,
    *,
    batch_sizes: Sequence[int] = (),
    meshes: int = 4,
    remats: Sequence[Remat] = ("none", "full"),
    accumulate_steps: Sequence[int] = (1, 2, 4, 8),
    dollars_per_device_hour: float | None = None,
) -> tuple[Candidate, ...]:
    """Plans every preset and the most likely other meshes with every size of batch, the least time of an example first.

    Each plan is compiled, so a search takes as long as that many plans. Equal times are ranked by the needed memory. If
    no candidate of a batch fits, the candidates are tried again with rematerialisation, then with more micro-batches.
    If `logical_axis_rules` of the RunConfig name an axis of the mesh, the presets that split layers are tried too, with
    2, 4 and 8 devices along it. If it names stages (a rule such as `("layers/.*", ("stage",))`), and a network joins
    groups of devices, each group is a stage of the presets "pipeline" and "pipeline+tensor". A preset whose stages
    cannot share the layers is left out. The other meshes are all products of `data`, `fsdp` and the axes that the
    RunConfig names, with the rules that differ on them. A roofline by their shardings chooses those that are compiled.

    Args:
        estimator: the Estimator, for its model_fn, params and RunConfig. Its partition rules come before those of a
            preset.
        batch: one batch of its training input.
        found: the topology and its backend.
        batch_sizes: the numbers of examples of the global batch to compare. Empty: the size of the batch.
        meshes: the number of meshes besides the presets that are compiled.
        remats: the parts that the backward pass computes again. "full" is tried only if nothing fits without it.
        accumulate_steps: the factors for the number of micro-batches in the RunConfig. Factors after the first are
            tried only if nothing fits with all of `remats`.
        dollars_per_device_hour: the price of one device.

    Raises:
        ArgumentError: the number of meshes is negative, or the price is negative or not finite.
    """
    if meshes < 0:
        raise ArgumentError(f"meshes must not be negative, given: {meshes}.")
    if dollars_per_device_hour is not None and not 0 <= dollars_per_device_hour < math.inf:
        raise ArgumentError(
            f"The price of a device for an hour must be finite and not negative, given: {dollars_per_device_hour}."
        )
    parts_of_program = estimator.config.accumulate_steps
    ways = [*((remat, accumulate_steps[0]) for remat in remats), *((remats[-1], n) for n in accumulate_steps[1:])]
    candidates: list[Candidate] = []
    known = _presets(estimator, found)
    for size in batch_sizes or (None,):
        others = likely_meshes(estimator, batch, found, known, batch_size=size, count=meshes)
        for remat, parts in ways:
            chosen = [
                dataclasses.replace(preset, remat=remat, accumulate_steps=parts_of_program * parts)
                for preset in (*known, *others)
            ]
            tried = list(_tried(estimator, batch, found, chosen, size, dollars_per_device_hour))
            candidates += tried
            if any(each.plan.memory.shortfall == 0 for each in tried):
                break
    return tuple(sorted(candidates, key=lambda each: (each.seconds_per_example, each.plan.memory.needed)))


def _presets(estimator: Estimator, found: Found) -> list[Preset]:
    """Returns the presets for a topology, and for the axes that the rules of the RunConfig name."""
    topology, known = found.topology, presets(found.topology.slice_count)
    named = [
        [entry] if isinstance(entry, str) else entry or () for entry in estimator.config.logical_axis_rules.values()
    ]
    axes = dict.fromkeys(axis for each in named for axis in each if axis not in (*BATCH_AXES, STAGES))
    inside = topology.device_count // topology.slice_count
    for axis, size in itertools.product(axes, (2, 4, 8)):
        if inside % size == 0 and size < inside:
            known = {**known, **tensor_presets(axis, size, topology.slice_count)}
    joined = min(inside, topology.figures.group_size or inside)
    if has_stages(estimator.config) and joined < topology.device_count:
        for axis, size in itertools.product(axes or (None,), dict.fromkeys((2, 4, 8, joined))):
            split = {} if axis is None or joined % size else {axis: size}
            known = {**known, **pipeline_presets(topology.device_count // joined, split)}
    return list(known.values())


def _tried(
    estimator: Estimator,
    batch: Batch,
    found: Found,
    chosen: Sequence[Preset],
    batch_size: int | None,
    price: float | None,
) -> Iterator[Candidate]:
    """Yields the plans of presets. Stages are left out if they cannot share the layers of the program equally."""
    for preset in chosen:
        try:
            yield _candidate(estimator, batch, found, preset, batch_size, price)
        except ArgumentError:
            if STAGES not in preset.mesh:
                raise


def _candidate(
    estimator: Estimator, batch: Batch, found: Found, preset: Preset, batch_size: int | None, price: float | None
) -> Candidate:
    changed = preset.run_config(estimator.config.partition_rules)
    plan = plan_training(
        estimator,
        batch,
        found,
        mesh=changed["mesh"],
        partition_rules=changed["partition_rules"],
        remat=preset.remat,
        accumulate_steps=preset.accumulate_steps,
        batch_size=batch_size,
    )
    hours = None if plan.times.at_least is None else plan.times.at_least * 1e6 / 3600
    dollars = None if hours is None or price is None else hours * price * found.topology.device_count
    return Candidate(preset=preset, plan=plan, dollars=dollars)


def search_report(candidates: Sequence[Candidate]) -> str:
    """Returns the candidates as a table, the best first, and the reason for the first one."""
    head = (
        "preset",
        "remat",
        "batch",
        "parts",
        "needed",
        "sent a device",
        "at least",
        "bound by",
        "dollars a million steps",
    )
    rows = [
        (
            each.preset.name,
            each.preset.remat,
            str(each.plan.examples),
            str(each.preset.accumulate_steps),
            gib(each.plan.memory.needed) + (" DOES NOT FIT" if each.plan.memory.shortfall else ""),
            "?" if each.sent_bytes is None else gib(each.sent_bytes),
            seconds_text(each.plan.times.at_least),
            each.plan.times.bound_by or "?",
            "" if each.dollars is None else f"{each.dollars:,.2f}",
        )
        for each in candidates
    ]
    best = candidates[0]
    if best.seconds == float("inf"):
        return "\n".join([*table(head, rows), "", "None of them is known to fit."])
    why = f"Best: {best.preset.name}, bound by {best.plan.times.bound_by}. It sends {best.preset.sends}."
    return "\n".join([*table(head, rows), "", why])
