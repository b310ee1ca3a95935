"""Moves the arrays of a checkpoint of TensorFlow to their places in a model of estimator-core, with a report."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_core.checkpoint import CheckpointItems
from estimator_core.errors import CheckpointMismatchError
from estimator_migration.checkpoints.slots import Slot, factor_of, names_of, slot_of

GLOBAL_STEP = "global_step"


@dataclass(frozen=True, kw_only=True)
class Converted:
    """A checkpoint of estimator-core that was made from one of TensorFlow.

    Args:
        items: the content of the checkpoint.
        taken: the origin of each array: names in TensorFlow, by name in estimator-core.
        unused: the names of TensorFlow arrays that were not used.
        step: the global step.
    """

    items: CheckpointItems
    taken: Mapping[str, str]
    unused: tuple[str, ...]
    step: int

    def report(self) -> str:
        """Returns one line for each array."""
        lines = [f"{ours} <- {theirs}" for ours, theirs in self.taken.items()]
        return "\n".join([*lines, *(f"not used: {name}" for name in self.unused), f"global step {self.step}"])


def convert(
    template: CheckpointItems, tensors: Mapping[str, np.ndarray], names: Mapping[str, str] | None = None
) -> Converted:
    """Fills a checkpoint of a model with the arrays of TensorFlow: variables, slots, global step.

    Rows of bytes that TensorFlow does not have, such as `data_contract`, stay as they are.

    Args:
        template: a checkpoint of the model, as `read_checkpoint` returns it, with any values.
        tensors: the arrays of TensorFlow, by name.
        names: the names that differ, of variables or leaves of the optimizer's state: the name in TensorFlow, by name
            in estimator-core.

    Raises:
        CheckpointMismatchError: arrays are missing or have another shape. The message names all of them.
    """
    places = _Places(tensors, names or {})
    variables = places.filled(template.variables, lambda path: [places.name_of(path)])
    own = {path: value for path, value in template.model_state.items() if _is_record(value) and path not in tensors}
    from_there = {path: value for path, value in template.model_state.items() if path not in own}
    model_state = {**own, **places.filled(from_there, lambda path: [places.name_of(path)])}
    paths = [*template.variables, *template.model_state]
    here = {leaf: slot_of(leaf, paths) for leaf in template.opt_state}
    slots = {leaf: places.there(slot) for leaf, slot in here.items()}
    places.of_variables = {places.name_of(path) for path in paths}
    opt_state = places.filled(template.opt_state, lambda leaf: places.candidates(leaf, slots[leaf]))
    places.refuse_shared(here)
    opt_state = {leaf: places.scaled(leaf, value, slots[leaf]) for leaf, value in opt_state.items()}
    if places.faults:
        raise CheckpointMismatchError(
            "The checkpoint of TensorFlow does not fit the model:\n  "
            + "\n  ".join(places.faults)
            + "\nIt has: "
            + ", ".join(sorted(tensors))
            + ".\nPut names that differ in the mapping file: {name here: name there}."
        )
    step = int(tensors.get(GLOBAL_STEP, np.asarray(0)))
    clock = np.array(template.clock)
    clock[0] = step
    items = dataclasses.replace(
        template,
        clock=clock,
        variables=variables,
        model_state=model_state,
        opt_state=opt_state,
        input=None,
        hooks={},
        timers={},
    )
    unused = tuple(sorted(set(tensors) - set(places.taken.values()) - {GLOBAL_STEP}))
    return Converted(items=items, taken=places.taken, unused=unused, step=step)


def _is_record(value: Any) -> bool:
    """Returns whether an array is a row of bytes that the model itself sets, such as a description of its data.

    TensorFlow has no such variable.
    """
    return value.dtype == np.uint8 and value.ndim == 1


class _Places:
    """Fills arrays, and records the origin of each value and every fault."""

    def __init__(self, tensors: Mapping[str, np.ndarray], names: Mapping[str, str]) -> None:
        self.tensors = tensors
        self.names = names
        self.taken: dict[str, str] = {}
        self.faults: list[str] = []
        self.of_variables: set[str] = set()

    def name_of(self, path: str) -> str:
        return self.names.get(path, path)

    def there(self, slot: Slot) -> Slot:
        return dataclasses.replace(slot, variable=self.name_of(slot.variable))

    def candidates(self, leaf: str, slot: Slot) -> list[str]:
        if leaf in self.names:
            return [self.names[leaf]]
        if slot.counts_steps:
            return [GLOBAL_STEP]
        found = names_of(slot, self.tensors, self.of_variables)
        if len(found) > 1:
            self.faults.append(f"{leaf}: several arrays match; name one of them: {', '.join(found)}")
        return found

    def filled(self, places: Mapping[str, Any], candidates: Any) -> dict[str, Any]:
        return {path: self._value(path, value, candidates(path)) for path, value in places.items()}

    def refuse_shared(self, slots: Mapping[str, Slot]) -> None:
        """Records a fault if two slots use the same array, because the array then belongs to another variable.

        It is allowed if a name says so, or if names map both variables to one of TensorFlow; then both use its slots.
        """
        owners: dict[str, str] = {}
        for leaf, slot in slots.items():
            name = self.taken.get(leaf, GLOBAL_STEP)
            if name == GLOBAL_STEP or leaf in self.names:
                continue
            owner = owners.setdefault(name, leaf)
            tied = slots[owner] != slot and self.there(slots[owner]) == self.there(slot)
            if owner != leaf and not tied:
                self.faults.append(f"{leaf}: {name} is already used by {owner}: name the array of one of them")

    def scaled(self, leaf: str, value: Any, slot: Slot) -> Any:
        name = self.taken.get(leaf)
        factor = 1.0 if name is None else factor_of(slot, name, self.tensors)
        if math.isnan(factor):
            self.faults.append(
                f"{leaf}: {name} is a sum of updates, and their rate changes or is not in the checkpoint; the slot "
                "here is a sum of gradients"
            )
        return value if factor == 1.0 else (value * factor).astype(value.dtype)

    def _value(self, path: str, place: Any, candidates: list[str]) -> Any:
        found = next((name for name in candidates if name in self.tensors), None)
        if found is None:
            self.faults.append(f"{path}: not there{f' as {candidates[0]}' if candidates else ''}")
            return place
        value = self.tensors[found]
        if value.shape != place.shape:
            self.faults.append(f"{path}: {place.shape} here, {value.shape} there ({found})")
            return place
        self.taken[path] = found
        return value.astype(place.dtype)
