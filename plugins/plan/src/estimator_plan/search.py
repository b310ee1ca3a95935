"""Compares the plans of the presets: which one fits, and takes the least time by the roofline."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from estimator_core.estimator import Estimator
from estimator_core.inputs import Batch
from estimator_plan.memory import gib
from estimator_plan.preset import Preset, Remat, presets
from estimator_plan.tables import seconds_text, table
from estimator_plan.topologies import Found
from estimator_plan.training_plan import TrainingPlan, plan_training


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One way to split the step, and its plan.

    Attributes:
        preset: the way.
        plan: the plan of the step.
        dollars: the price of a million steps; None: no price was given, or the time is not known.
    """

    preset: Preset
    plan: TrainingPlan
    dollars: float | None = None

    @property
    def seconds(self) -> float:
        """The bound by which candidates are ranked. A candidate that does not fit or is not known comes last."""
        least = self.plan.times.at_least
        return float("inf") if self.plan.memory.shortfall or least is None else least

    @property
    def sent_bytes(self) -> int | None:
        """Bytes that each device sends in a step; None: nothing was compiled."""
        found = self.plan.collectives
        return None if found is None else sum(each.sent_bytes for each in found)


def search_plans(
    estimator: Estimator,
    batch: Batch,
    found: Found,
    *,
    batch_size: int | None = None,
    remats: Sequence[Remat] = ("none", "full"),
    dollars_per_device_hour: float | None = None,
) -> tuple[Candidate, ...]:
    """Plans every preset with every choice of rematerialisation, the best first.

    Each one is compiled, so a search takes as long as that many plans. Equal times are ranked by the needed memory.

    Args:
        estimator: its model_fn, params and RunConfig are used; its partition rules come before those of a preset.
        batch: one batch of its training input.
        found: the topology and its backend.
        batch_size: the number of examples of the global batch.
        remats: the parts that the backward pass computes again; "full" is tried only if nothing fits without it.
        dollars_per_device_hour: the price of one device.
    """
    rules = estimator.config.partition_rules
    candidates: list[Candidate] = []
    for remat, preset in itertools.product(remats, presets(found.topology.slice_count).values()):
        if remat != remats[0] and any(candidate.seconds < float("inf") for candidate in candidates):
            break
        chosen = dataclasses.replace(preset, remat=remat)
        changed = chosen.run_config(rules)
        plan = plan_training(
            estimator,
            batch,
            found,
            mesh=changed["mesh"],
            partition_rules=changed["partition_rules"],
            remat=remat,
            batch_size=batch_size,
        )
        hours = None if plan.times.at_least is None else plan.times.at_least * 1e6 / 3600
        price = dollars_per_device_hour
        dollars = None if hours is None or price is None else hours * price * found.topology.device_count
        candidates.append(Candidate(preset=chosen, plan=plan, dollars=dollars))
    return tuple(sorted(candidates, key=lambda each: (each.seconds, each.plan.memory.needed)))


def search_report(candidates: Sequence[Candidate]) -> str:
    """The candidates as a table, the best first, and the reason for the first one."""
    head = ("preset", "remat", "needed", "sent a device", "at least", "bound by", "dollars a million steps")
    rows = [
        (
            each.preset.name,
            each.preset.remat,
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
