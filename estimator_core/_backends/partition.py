"""Decides how axes of variables and activations are split over the axes of the mesh, and arranges the mesh."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import jax
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import Mesh, PartitionSpec

from estimator_core._backends.contract import BATCH_AXES, STAGES
from estimator_core._model.variables import VariableSpec
from estimator_core._types import PyTree
from estimator_core.config import FullySharded
from estimator_core.errors import ArgumentError

#: The mesh axes that split one axis of an array: one, several, or None.
AxisEntry: TypeAlias = "str | Sequence[str] | None"
Entry = TypeVar("Entry")

#: The mesh axes over which a named axis of an array is split, by that name.
LogicalAxisRules: TypeAlias = Mapping[str, AxisEntry]


def mesh_axes(name: str | None, rules: LogicalAxisRules) -> tuple[str, ...]:
    """Returns the mesh axes that a name stands for. A name without a rule is the name of a mesh axis.

    Example:
        >>> mesh_axes("mlp", {"mlp": "model"}), mesh_axes("model", {}), mesh_axes(None, {})
        (('model',), ('model',), ())
    """
    return _one_by_one(rules.get(name, name) if name is not None else None)


@dataclass(frozen=True, kw_only=True)
class PartitionRules:
    """The rules that split variables by their names, for one mesh.

    Attributes:
        sizes: the sizes of the mesh axes, by name.
        rules: pairs `(regex, spec)`. The first regex that matches the whole name of a variable decides.
        axis_rules: the meanings of the names in specs, in addition to the axes of the mesh.
        notes: the requests that could not be fulfilled, each once.

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
        """Returns how a variable is split: by the first rule that matches, otherwise by its module, otherwise not at
        all.

        Args:
            variable: the record of the variable.
            slot: whether the array is an optimizer slot with the shape of the variable.
        """
        rule = next((spec for pattern, spec in self.rules if re.fullmatch(pattern, variable.name)), None)
        if isinstance(rule, FullySharded):
            entries = self._existing(variable, _one_by_one(rule.base))
            if rule.slots_only and not slot:
                return PartitionSpec(*entries)
            return PartitionSpec(*self._fully_sharded(variable, entries, rule))
        if rule is not None:
            return PartitionSpec(*self._existing(variable, _one_by_one(rule)))
        if variable.sharding is not None:
            return PartitionSpec(*self._existing(variable, tuple(variable.sharding)))
        return PartitionSpec()

    def check_used(self, variables: Mapping[str, VariableSpec]) -> None:
        """Adds a note for each rule that matches no variable, because a misspelt regex would silently leave its
        variables whole.
        """
        for pattern, _ in self.rules:
            if not any(re.fullmatch(pattern, name) for name in variables):
                self.notes.setdefault(f"partition_rules: {pattern!r} matches no variable.")

    def _existing(self, variable: VariableSpec, entries: Sequence[AxisEntry]) -> list[AxisEntry]:
        """Drops axes that the mesh lacks and splits that do not divide."""
        if len(entries) > len(variable.shape):
            raise ArgumentError(
                f"partition_rules: variable {variable.name!r} has {len(variable.shape)} axes, but its partition spec "
                f"{tuple(entries)} has {len(entries)}."
            )
        kept: list[AxisEntry] = []
        for size, entry in zip(variable.shape, entries, strict=False):
            named = tuple(axis for name in _one_by_one(entry) for axis in mesh_axes(name, self.axis_rules))
            axes = [axis for axis in named if axis in self.sizes]
            for axis in named:
                if axis not in self.sizes:
                    self.notes.setdefault(f"The mesh has no axis {axis!r}, so no array is split over it.")
            parts = self._parts(axes)
            if size % parts:
                self.notes.setdefault(
                    f"{variable.name} is not split over {'+'.join(axes)}: {size} is not divisible by {parts}."
                )
                axes = []
            kept.append(_one_or_all(axes))
        return kept

    def _fully_sharded(self, variable: VariableSpec, entries: list[AxisEntry], rule: FullySharded) -> list[AxisEntry]:
        entries = [*entries, *[None] * (len(variable.shape) - len(entries))]
        asked = _one_by_one(BATCH_AXES if rule.axes is None else rule.axes)
        taken = {axis for entry in entries for axis in _one_by_one(entry)}
        axes = tuple(axis for axis in asked if axis in self.sizes and axis not in taken)
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


def _one_by_one(entries: str | Iterable[Entry] | None) -> tuple[str | Entry, ...]:
    """Returns the parts of one name, of several parts, or of None."""
    return (entries,) if isinstance(entries, str) else tuple(entries or ())


def _one_or_all(axes: Sequence[str]) -> AxisEntry:
    return tuple(axes) if len(axes) > 1 else next(iter(axes), None)


_DEFAULT: LogicalAxisRules = {"batch": BATCH_AXES}
_RULES: ContextVar[LogicalAxisRules] = ContextVar("logical_axis_rules", default=_DEFAULT)


def with_logical_constraint(array: jax.Array, axes: Sequence[str | None]) -> jax.Array:
    """Returns the array, split over the mesh according to the names of its axes.

    Inside model_fn, one call at the beginning of a layer keeps activations split by example. Without it, the compiler
    may split them like the variables that they are combined with, and communicate many times as much. Without a mesh,
    and for an axis that does not divide evenly, nothing changes.

    Args:
        array: an array of any shape and dtype.
        axes: one name for each axis. None: not split. "batch" is split like the batch, the name of a mesh axis over
            this axis, and other names by `RunConfig(logical_axis_rules=...)`.

    Raises:
        ArgumentError: the number of names is not the number of axes.

    Example:
        >>> import jax.numpy as jnp
        >>> with_logical_constraint(jnp.ones((2, 3)), ("batch", "embed")).shape
        (2, 3)

    Source: `flax.linen.with_logical_constraint`.
    """
    if len(axes) != array.ndim:
        raise ArgumentError(
            f"with_logical_constraint: an array of shape {array.shape} needs {array.ndim} axis names, given: "
            f"{tuple(axes)!r}."
        )
    sizes = dict(jax.sharding.get_abstract_mesh().shape)
    entries = split_axes(array.shape, axes, sizes, _RULES.get())
    return jax.lax.with_sharding_constraint(array, PartitionSpec(*entries)) if any(entries) else array


def gathered(tree: PyTree) -> PyTree:
    """Gathers whole variables on every device where they are used: the communication of fully sharded training, made
    explicit.

    Call it on the weights of one layer inside model_fn, for example in the body of a scan over layers. Without it, the
    compiler may send activations or parts of products instead, which is more data for wide layers. If the mesh has
    other axes than those of the batch, such as "model", nothing changes.

    Args:
        tree: an array, or a container of arrays.

    Example:
        >>> import jax.numpy as jnp
        >>> gathered({"kernel": jnp.ones((2, 3))})["kernel"].shape
        (2, 3)

    Source: Rajbhandari et al., ZeRO (2019), stage 3.
    """
    sizes = dict(jax.sharding.get_abstract_mesh().shape)
    split = [axis for axis, size in sizes.items() if size > 1]
    if not split or not set(split) <= set(BATCH_AXES):
        return tree
    return jax.tree.map(lambda array: jax.lax.with_sharding_constraint(array, PartitionSpec()), tree)


def split_axes(
    shape: Sequence[int], axes: Sequence[str | None], sizes: Mapping[str, int], rules: LogicalAxisRules
) -> list[AxisEntry]:
    """Returns the mesh axes that split each axis of an array. Each mesh axis is used once.

    Example:
        >>> split_axes((8, 6), ("batch", "embed"), {"data": 2, "model": 3}, {"batch": ("data",), "embed": "model"})
        [('data',), ('model',)]
    """
    free = {axis for axis, size in sizes.items() if size > 1}
    entries: list[AxisEntry] = []
    for size, name in zip(shape, axes, strict=True):
        found = tuple(axis for axis in mesh_axes(name, rules) if axis in free)
        if not found or size % math.prod(sizes[axis] for axis in found):
            found = ()
        free -= set(found)
        entries.append(found or None)
    return entries


@contextlib.contextmanager
def logical_axis_rules(rules: LogicalAxisRules) -> Generator[None]:
    """Applies these rules to everything that is traced inside the block, in addition to the rule of "batch"."""
    token = _RULES.set({**_DEFAULT, **rules})
    try:
        yield
    finally:
        _RULES.reset(token)


def arranged(devices: Sequence[object], sizes: Mapping[str, int]) -> Mesh:
    """Returns the mesh of these axes over all of the devices.

    Neighbours along an axis are neighbours in the hardware if jax knows the topology. Several slices are connected only
    by a network. One axis crosses it: the stages or a batch axis, if the number of slices divides one. Every other axis
    stays within a slice.

    Args:
        devices: the devices. Their number is the product of the sizes.
        sizes: the sizes of the axes, by name.

    Example:
        >>> dict(arranged(jax.devices()[:1], {"data": 1, "model": 1}).shape)
        {'data': 1, 'model': 1}

    Source: `jax.experimental.mesh_utils`.
    """
    shape = tuple(sizes.values())
    across = network_axes(sizes, slice_count(devices))
    if math.prod(across.values()) > 1:
        inside = [size // across[axis] for axis, size in sizes.items()]
        grid = mesh_utils.create_hybrid_device_mesh(
            inside, list(across.values()), list(devices), allow_split_physical_axes=True
        )
    else:
        grid = _within_a_slice(devices, shape)
    return Mesh(grid, tuple(sizes), axis_types=(jax.sharding.AxisType.Auto,) * len(shape))


def slice_count(devices: Sequence[object]) -> int:
    """Returns the number of groups of devices that are connected only by a network; 1 if the groups are unknown or
    unequal.

    Example:
        >>> slice_count(jax.devices()[:1])
        1
    """
    slices = [getattr(device, "slice_index", None) for device in devices]
    counts = {index: slices.count(index) for index in set(slices)}
    return len(counts) if len(set(counts.values())) == 1 else 1


def network_axes(sizes: Mapping[str, int], slices: int) -> dict[str, int]:
    """Returns the part of each axis that crosses the network: all slices, on the first axis that they divide evenly.

    Stages of a pipeline are first, since they send least, then batch axes.

    Example:
        >>> network_axes({"model": 4, "data": 8}, 2)
        {'model': 1, 'data': 2}
        >>> network_axes({"model": 4, "data": 3}, 2)
        {'model': 2, 'data': 1}
        >>> network_axes({"data": 2, "stage": 2}, 2)
        {'data': 1, 'stage': 2}
    """
    order = sorted(sizes, key=lambda axis: (axis != STAGES, axis not in BATCH_AXES))
    crossing = next((axis for axis in order if sizes[axis] % slices == 0), None)
    return {axis: slices if axis == crossing else 1 for axis in sizes}


def crossing_axes(mesh: Mesh) -> tuple[str, ...]:
    """Returns the axes along which neighbours are in different slices.

    Example:
        >>> crossing_axes(arranged(jax.devices()[:1], {"data": 1}))
        ()
    """
    slices = np.vectorize(lambda device: getattr(device, "slice_index", None) or 0, otypes=[int])(mesh.devices)
    return tuple(axis for place, axis in enumerate(mesh.axis_names) if np.diff(slices, axis=place).any())


def _within_a_slice(devices: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
    plain = np.array(devices, dtype=object).reshape(shape)
    if devices[0].platform != "tpu" or not _fill_a_box(devices):
        return plain
    try:
        return mesh_utils.create_device_mesh(shape, list(devices), allow_split_physical_axes=True)
    except NotImplementedError:  # jax has no arrangement of this shape
        return plain


def _fill_a_box(devices: Sequence[Any]) -> bool:
    """Returns whether the chips fill a box of their slice, as jax requires. A mesh may use only some of the chips."""
    places = np.array([(*device.coords, device.core_on_chip) for device in devices])
    return len(devices) == np.prod(np.ptp(places, axis=0) + 1)
