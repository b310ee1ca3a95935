"""Partition rules: which axes of a variable are split over which axes of the mesh."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from jax.sharding import PartitionSpec

from estimator_core._model.variables import VariableSpec
from estimator_core.config import FullySharded
from estimator_core.errors import ArgumentError

#: Mesh axes over which batches are split; parameters may be split over them too.
BATCH_AXES = ("data", "fsdp")


#: What splits one axis of an array: an axis of the mesh, several, or None.
AxisEntry: TypeAlias = "str | Sequence[str] | None"

#: The mesh axes that an axis of an array is split over, by the name of that axis.
LogicalAxisRules: TypeAlias = Mapping[str, AxisEntry]


def mesh_axes(name: str | None, rules: LogicalAxisRules) -> tuple[str, ...]:
    """The mesh axes that a name stands for. A name without a rule is the name of a mesh axis.

    Example:
        >>> mesh_axes("mlp", {"mlp": "model"}), mesh_axes("model", {}), mesh_axes(None, {})
        (('model',), ('model',), ())
    """
    entry = rules.get(name, name) if name is not None else None
    return (entry,) if isinstance(entry, str) else tuple(entry or ())


@dataclass(frozen=True, kw_only=True)
class PartitionRules:
    """Rules over the names of variables, for one mesh.

    Attributes:
        sizes: the sizes of the mesh's axes, by name.
        rules: `(regex, spec)`; the first that matches a variable's whole name decides.
        axis_rules: what the names in specs stand for, besides the mesh's own axes.
        notes: what could not be done as requested, once each.

    Example:
        >>> import numpy as np
        >>> kernel = VariableSpec("dense/kernel", (6, 8), np.dtype("float32"), np.zeros((6, 8)), True)
        >>> tuple(PartitionRules(sizes={"data": 4}, rules=[(".*", FullySharded())]).spec_of(kernel))
        (None, 'data')
    """

    sizes: Mapping[str, int]
    rules: Sequence[tuple[str, Any]]
    axis_rules: LogicalAxisRules = field(default_factory=dict[str, AxisEntry])
    notes: dict[str, None] = field(default_factory=dict[str, None])

    def spec_of(self, variable: VariableSpec, *, slot: bool = False) -> PartitionSpec:
        """How a variable is split: by the first rule that matches, otherwise as its module says, otherwise not at all.

        Args:
            variable: its record.
            slot: for an array of the optimizer that has the variable's shape.
        """
        rule = next((spec for pattern, spec in self.rules if re.fullmatch(pattern, variable.name)), None)
        if isinstance(rule, FullySharded):
            entries = self._existing(variable, _entries(rule.base))
            if rule.slots_only and not slot:
                return PartitionSpec(*entries)
            return PartitionSpec(*self._fully_sharded(variable, entries, rule))
        if rule is not None:
            return PartitionSpec(*self._existing(variable, _entries(rule)))
        if variable.sharding is not None:
            return PartitionSpec(*self._existing(variable, tuple(variable.sharding)))
        return PartitionSpec()

    def check_used(self, variables: Mapping[str, VariableSpec]) -> None:
        """Notes the rules that match no variable: a misspelt regex would silently leave its variables whole."""
        for pattern, _ in self.rules:
            if not any(re.fullmatch(pattern, name) for name in variables):
                self.notes.setdefault(f"partition_rules: {pattern!r} matches no variable.")

    def _existing(self, variable: VariableSpec, entries: Sequence[AxisEntry]) -> list[AxisEntry]:
        """Drops axes that the mesh lacks and splits that do not divide."""
        if len(entries) > len(variable.shape):
            raise ArgumentError(
                f"partition_rules: variable {variable.name!r} has {len(variable.shape)} axes, its partition spec "
                f"{tuple(entries)} has {len(entries)}."
            )
        kept: list[AxisEntry] = []
        for size, entry in zip(variable.shape, entries, strict=False):
            given = (entry,) if isinstance(entry, str) else tuple(entry or ())
            named = tuple(axis for name in given for axis in mesh_axes(name, self.axis_rules))
            axes = [axis for axis in named if axis in self.sizes]
            for axis in named:
                if axis not in self.sizes:
                    self.notes.setdefault(f"The mesh has no axis {axis!r}: what asks for it is not split over it.")
            parts = self._parts(axes)
            if size % parts:
                self.notes.setdefault(
                    f"{variable.name} is not split over {'+'.join(axes)}: {size} does not divide by {parts}."
                )
                axes = []
            kept.append(_one_or_all(axes))
        return kept

    def _fully_sharded(self, variable: VariableSpec, entries: list[AxisEntry], rule: FullySharded) -> list[AxisEntry]:
        entries = [*entries, *[None] * (len(variable.shape) - len(entries))]
        axes = _names(BATCH_AXES if rule.axes is None else rule.axes)
        taken = {axis for entry in entries for axis in ((entry,) if isinstance(entry, str) else entry or ())}
        axes = tuple(axis for axis in axes if axis in self.sizes and axis not in taken)
        parts = self._parts(axes)
        if parts == 1 or variable.size < rule.min_size:
            return entries
        free = [i for i, size in enumerate(variable.shape) if entries[i] is None and size and size % parts == 0]
        if free:
            widest = max(free, key=lambda i: variable.shape[i])
            entries[widest] = _one_or_all(axes)
        return entries

    def _parts(self, axes: Sequence[str]) -> int:
        return math.prod(self.sizes[axis] for axis in axes)


def _entries(spec: str | Iterable[AxisEntry]) -> tuple[AxisEntry, ...]:
    return (spec,) if isinstance(spec, str) else tuple(spec)


def _one_or_all(axes: Sequence[str]) -> AxisEntry:
    return tuple(axes) if len(axes) > 1 else next(iter(axes), None)


def _names(axes: str | Sequence[str]) -> tuple[str, ...]:
    return (axes,) if isinstance(axes, str) else tuple(axes)
