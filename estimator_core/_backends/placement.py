"""Places arrays: a mesh of devices, and partition rules over the names of variables."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from estimator_core._backends.contract import BATCH_AXES
from estimator_core._backends.partition import (
    LogicalAxisRules,
    PartitionRules,
    arranged,
    crossing_axes,
    logical_axis_rules,
)
from estimator_core._model.variables import VariableSpec
from estimator_core._types import Mask, PyTree
from estimator_core.errors import ArgumentError

_log = logging.getLogger("estimator_core")


@dataclass(frozen=True, kw_only=True, eq=False)
class Placement:
    """A mesh and its rules. With one device, every method leaves arrays where they are, at no cost.

    Attributes:
        mesh: the devices, arranged along named axes.
        rules: the rules that split variables.
    """

    mesh: Mesh
    rules: PartitionRules

    @functools.cached_property
    def single(self) -> bool:
        """Whether there is only one device."""
        return self.mesh.size == 1

    @functools.cached_property
    def spans_processes(self) -> bool:
        """Whether devices of other processes belong to the mesh."""
        return len({device.process_index for device in self.mesh.devices.flat}) > 1

    @functools.cached_property
    def batch_axes(self) -> tuple[str, ...]:
        """The axes over which batches are split."""
        return tuple(axis for axis in BATCH_AXES if axis in self.mesh.shape)

    @functools.cached_property
    def batch_parts(self) -> int:
        """The number of parts into which a batch is split."""
        return math.prod(self.mesh.shape[axis] for axis in self.batch_axes)

    @functools.cached_property
    def replicated(self) -> NamedSharding:
        """The sharding with the whole array on every device."""
        return NamedSharding(self.mesh, PartitionSpec())

    @functools.cached_property
    def parts(self) -> dict[int, tuple[int, ...]]:
        """The parts of a batch, out of `batch_parts`, that the devices of each process hold, by process."""
        held: dict[int, set[int]] = {
            process: set() for process in sorted(d.process_index for d in self.mesh.devices.flat)
        }
        one_each = (self.batch_parts,)
        for device, (rows,) in self.batch_sharding(one_each).devices_indices_map(one_each).items():
            held[device.process_index].add(rows.start or 0)
        return {process: tuple(sorted(parts)) for process, parts in held.items()}

    @functools.cached_property
    def pipelines(self) -> tuple[tuple[int, ...], ...]:
        """The processes that hold each share of the input, ordered by the first part of the batch in the share.

        Processes hold the same share if no batch axis is split between them.

        Raises:
            ArgumentError: two processes hold overlapping, but different parts.
        """
        groups: dict[tuple[int, ...], list[int]] = {}
        for process, parts in self.parts.items():
            groups.setdefault(parts, []).append(process)
        if len(groups) * max(map(len, groups)) != self.batch_parts:
            raise ArgumentError(
                f"mesh {dict(self.mesh.shape)}: the devices of the processes hold parts of the batch that overlap or "
                f"differ in number ({self.parts}). Choose sizes of the batch axes that divide evenly among the "
                "processes."
            )
        return tuple(tuple(groups[parts]) for parts in sorted(groups))

    def input_part(self, process: int) -> tuple[int, int]:
        """Returns the part of the input that a process reads, and the number of parts."""
        return next(i for i, members in enumerate(self.pipelines) if process in members), len(self.pipelines)

    def global_batch(self, part: np.ndarray, total: int | None = None) -> jax.Array:
        """Makes a global batch from this process's rows.

        Args:
            part: the rows of this process. All rows, if the global batch does not divide evenly into its parts.
            total: the number of rows of the global batch. None: all processes have equally many.
        """
        if not part.ndim:
            return self.put(part, self.replicated)
        rows = part.shape[0] * len(self.pipelines) if total is None else total
        shape = (rows, *part.shape[1:])
        return jax.make_array_from_process_local_data(self.batch_sharding(shape), part, shape)

    def whole(self, array: Mask) -> Mask:
        """Returns an array that every process can read. All processes must call it."""
        return array if array is None or not self.spans_processes else self._gather(array)

    @functools.cached_property
    def _gather(self) -> Callable[[Mask], jax.Array]:
        return jax.jit(lambda array: array, out_shardings=self.replicated)

    def context(self) -> contextlib.AbstractContextManager[object]:
        """Makes the mesh the current one, so that sharding annotations of modules have their axes."""
        return _Current(self)

    def batch(self, batch: PyTree) -> PyTree:
        """Returns a batch on the devices: split over the batch axes if its size divides evenly, else whole on every
        device.
        """
        if self.single:
            return batch
        features, labels, weights = (
            jax.tree.map(lambda leaf: jax.device_put(leaf, self.batch_sharding(leaf.shape)), tree)
            for tree in (batch.features, batch.labels, batch.weights)
        )
        return batch._replace(features=features, labels=labels, weights=weights)

    def batch_sharding(self, shape: Sequence[int], leading: int = 0) -> NamedSharding:
        """Returns the sharding of an array whose axis `leading` is the example."""
        divides = len(shape) > leading and shape[leading] % self.batch_parts == 0 and shape[leading] > 0
        if self.batch_parts == 1 or not divides:
            return self.replicated
        return NamedSharding(self.mesh, PartitionSpec(*[None] * leading, self.batch_axes))

    def stack(self, arrays: Sequence[PyTree]) -> PyTree:
        """Stacks arrays of one shape from several batches along a leading axis of steps, each split like a batch."""
        shape = (len(arrays), *arrays[0].shape)
        if not self.single:
            out = self.batch_sharding(shape, leading=1)
            return jax.jit(lambda *parts: jnp.stack(parts), out_shardings=out)(*arrays)
        # Concatenation takes half the time of np.stack, which first adds the axis to every array.
        return np.concatenate(arrays).reshape(shape) if len(shape) > 1 else np.stack(arrays)

    def micro_batches(self, tree: PyTree) -> PyTree:
        """Returns the parts of a batch in a trace, stacked along a leading axis, each split over all devices again."""
        if self.batch_parts == 1:
            return tree
        return jax.tree.map(
            lambda leaf: jax.lax.with_sharding_constraint(leaf, self.batch_sharding(leaf.shape, leading=1)), tree
        )

    def plain(self, specs: Mapping[str, VariableSpec]) -> bool:
        """Returns whether all variables are in the memory of one device, so that none needs a sharding."""
        return self.single and not any(spec.memory for spec in specs.values())

    def variables(self, specs: Mapping[str, VariableSpec]) -> dict[str, NamedSharding] | None:
        """Returns the sharding of every variable; None if no variable needs one."""
        return None if self.plain(specs) else {name: self._sharding_of(spec) for name, spec in specs.items()}

    def like_variables(self, tree: PyTree, specs: Mapping[str, VariableSpec]) -> PyTree:
        """Returns the shardings of an optimizer state.

        A leaf below the name of a variable and with its shape is placed like the variable. The rest is replicated.
        """

        def of(path: tuple[object, ...], leaf: jax.Array) -> NamedSharding:
            for key in reversed(path):
                spec = specs.get(getattr(key, "key", None))  # type: ignore[arg-type]
                if spec is not None and spec.shape == leaf.shape:
                    return NamedSharding(self.mesh, self.rules.spec_of(spec, slot=True), memory_kind=spec.memory)
            return self.replicated

        return jax.tree_util.tree_map_with_path(of, tree)

    def put(self, value: object, sharding: NamedSharding) -> jax.Array:
        """Copies a host array to the devices. Each device receives only its own part.

        With several processes, each must pass the same array.
        """
        host = np.asarray(value)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: np.array(host[index], copy=True))

    def replicate(self, tree: PyTree) -> PyTree:
        """Copies host arrays to every device, whole."""
        return tree if self.single else jax.tree.map(lambda leaf: self.put(leaf, self.replicated), tree)

    def describe(self, specs: Mapping[str, VariableSpec]) -> str:
        """Describes the mesh and the share of the variables on each device, for the log. Failed requests follow."""
        self.rules.check_used(specs)
        whole = sum(spec.size * spec.dtype.itemsize for spec in specs.values())
        held = sum(
            math.prod(self._sharding_of(spec).shard_shape(spec.shape)) * spec.dtype.itemsize for spec in specs.values()
        )
        axes = ", ".join(f"{axis}={size}" for axis, size in self.mesh.shape.items())
        kind = self.mesh.devices.flat[0].device_kind
        line = (
            f"mesh {axes}: {self.mesh.size} devices ({kind}); each holds {held / 1e6:,.2f} MB of the variables' "
            f"{whole / 1e6:,.2f} MB."
        )
        crossing = "".join(f" Axis {axis} crosses the network between slices." for axis in crossing_axes(self.mesh))
        return "\n".join([line + crossing, *self.rules.notes])

    def _sharding_of(self, spec: VariableSpec) -> NamedSharding:
        return NamedSharding(self.mesh, self.rules.spec_of(spec), memory_kind=spec.memory)


class _Current(contextlib.AbstractContextManager[None]):
    """Makes the mesh and the rules of a placement current. A `Predictor` enters it for every row."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement

    def __enter__(self) -> None:
        self._mesh: contextlib.AbstractContextManager[object] = jax.set_mesh(self._placement.mesh)
        self._mesh.__enter__()
        self._rules = logical_axis_rules(self._placement.rules.axis_rules)
        self._rules.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._rules.__exit__(None, None, None)
        self._mesh.__exit__(None, None, None)


def place(
    devices: Sequence[Any],
    mesh: Mapping[str, int] | None,
    rules: Sequence[tuple[str, Any]],
    axis_rules: LogicalAxisRules = types.MappingProxyType({}),
) -> Placement:
    """Returns the placement that a RunConfig requests.

    Args:
        devices: the devices of the backend.
        mesh: the sizes of the axes, with -1 for the remaining devices. None: this process's first device, or batches
            split over all devices if these belong to several processes.
        rules: pairs `(regex, spec)`. A spec is a PartitionSpec, a tuple of axis names, or a `FullySharded`.
        axis_rules: the mesh axes that names of axes stand for.

    Raises:
        ArgumentError: the devices do not fill the mesh, or the mesh omits a process.
    """
    processes = {device.process_index for device in devices}
    sizes = dict(mesh) if mesh is not None else {"data": -1 if len(processes) > 1 else 1}
    fixed = math.prod(size for size in sizes.values() if size != -1)
    if -1 in sizes.values():
        if len(devices) % fixed:
            raise ArgumentError(f"mesh {dict(sizes)} does not divide the {len(devices)} available devices.")
        sizes = {axis: len(devices) // fixed if size == -1 else size for axis, size in sizes.items()}
    needed = math.prod(sizes.values())
    if needed > len(devices):
        raise ArgumentError(
            f"mesh {sizes} needs {needed} devices, but there are {len(devices)}. On CPU, "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={needed} creates that many."
        )
    if {device.process_index for device in devices[:needed]} != processes:
        raise ArgumentError(
            f"mesh {sizes} uses {needed} of {len(devices)} devices, which leaves out some of the {len(processes)} "
            "processes. Use all devices (-1 for one axis), or start fewer processes."
        )
    return Placement(
        mesh=arranged(list(devices)[:needed], sizes),
        rules=PartitionRules(sizes=sizes, rules=tuple(rules), axis_rules=axis_rules),
    )
