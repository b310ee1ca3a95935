"""Where arrays live: a mesh of devices, and partition rules over the names of variables."""

from __future__ import annotations

import contextlib
import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from estimator_core.errors import ArgumentError
from estimator_core.model.variables import VariableSpec

_log = logging.getLogger("estimator_core")
_DATA_AXIS = "data"


@dataclass(frozen=True, kw_only=True)
class Placement:
    """A mesh and its rules. With one device every method leaves arrays where they are, and costs nothing.

    Attributes:
        mesh: the devices, by named axes.
        rules: `(regex, PartitionSpec)`; the first that matches a variable's whole name decides.
    """

    mesh: Mesh
    rules: Sequence[tuple[str, PartitionSpec]]

    @property
    def single(self) -> bool:
        """Whether there is only one device."""
        return self.mesh.size == 1

    def context(self) -> contextlib.AbstractContextManager[Any]:
        """Makes the mesh the current one, so that sharding annotations of modules have their axes."""
        return jax.set_mesh(self.mesh)

    def batch(self, batch: Any) -> Any:
        """A batch on the devices: split over the data axis where its size divides, else whole on every device."""
        if self.single:
            return batch
        features, labels, weights = (
            jax.tree.map(self._put, tree) for tree in (batch.features, batch.labels, batch.weights)
        )
        return batch._replace(features=features, labels=labels, weights=weights)

    def stacked(self, tree: Any) -> Any:
        """The same for batches stacked along a leading axis of steps."""
        return tree if self.single else jax.tree.map(lambda leaf: self._put(leaf, leading=1), tree)

    def variables(self, specs: Mapping[str, VariableSpec]) -> dict[str, NamedSharding] | None:
        """The sharding of every variable, None with one device."""
        return None if self.single else {name: self._sharding_of(spec) for name, spec in specs.items()}

    def like_variables(self, tree: Any, specs: Mapping[str, VariableSpec]) -> Any:
        """Shardings for an optimizer state: a leaf of a variable's shape below its name is placed like the variable,
        the rest is replicated.
        """

        def of(path: tuple[Any, ...], leaf: Any) -> NamedSharding:
            for key in reversed(path):
                spec = specs.get(getattr(key, "key", None))  # type: ignore[arg-type]
                if spec is not None and spec.shape == leaf.shape:
                    return self._sharding_of(spec)
            return self.replicated

        return jax.tree_util.tree_map_with_path(of, tree)

    @property
    def replicated(self) -> NamedSharding:
        """The whole array on every device."""
        return NamedSharding(self.mesh, PartitionSpec())

    def _put(self, leaf: Any, leading: int = 0) -> Any:
        axis = self.mesh.shape.get(_DATA_AXIS, 1)
        divides = np.ndim(leaf) > leading and leaf.shape[leading] % axis == 0
        spec = PartitionSpec(*[None] * leading, _DATA_AXIS) if divides and axis > 1 else PartitionSpec()
        return jax.device_put(leaf, NamedSharding(self.mesh, spec))

    def _sharding_of(self, spec: VariableSpec) -> NamedSharding:
        for pattern, partition in self.rules:
            if re.fullmatch(pattern, spec.name):
                return NamedSharding(self.mesh, self._existing_axes(spec, partition))
        annotated = spec.sharding
        if annotated is not None:
            return NamedSharding(self.mesh, self._existing_axes(spec, PartitionSpec(*annotated)))
        return self.replicated

    def _existing_axes(self, spec: VariableSpec, partition: PartitionSpec) -> PartitionSpec:
        """Drops axes the mesh lacks and splits that do not divide."""
        if len(partition) > len(spec.shape):
            raise ArgumentError(
                f"partition_rules: variable {spec.name!r} has {len(spec.shape)} axes, its partition spec {partition} "
                f"has {len(partition)}."
            )
        kept: list[Any] = []
        for size, entry in zip(spec.shape, partition, strict=False):
            named: tuple[Any, ...] = (entry,) if isinstance(entry, str) else tuple(entry or ())
            axes: list[Any] = [axis for axis in named if axis in self.mesh.shape]
            parts = math.prod(self.mesh.shape[axis] for axis in axes)
            if axes and size % parts == 0:
                kept.append(tuple(axes) if len(axes) > 1 else axes[0])
            else:
                kept.append(None)
        return PartitionSpec(*kept)


def place(devices: Sequence[Any], mesh: Mapping[str, int] | None, rules: Sequence[tuple[str, Any]]) -> Placement:
    """The placement a RunConfig asks for.

    Args:
        devices: of the backend.
        mesh: axis sizes, -1 for the rest; None: the first device only.
        rules: `(regex, spec)`, spec a PartitionSpec or a tuple of axis names.

    Raises:
        ArgumentError: when the devices do not fill the mesh.
    """
    sizes = {_DATA_AXIS: 1} if mesh is None else dict(mesh)
    fixed = math.prod(size for size in sizes.values() if size != -1)
    if -1 in sizes.values():
        if len(devices) % fixed:
            raise ArgumentError(f"mesh {dict(sizes)} does not divide the {len(devices)} devices there are.")
        sizes = {axis: len(devices) // fixed if size == -1 else size for axis, size in sizes.items()}
    needed = math.prod(sizes.values())
    if needed > len(devices):
        raise ArgumentError(
            f"mesh {sizes} needs {needed} devices, but there are {len(devices)}. On CPU, "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={needed} makes as many."
        )
    grid = np.array(list(devices)[:needed], dtype=object).reshape(tuple(sizes.values()))
    axis_types = (jax.sharding.AxisType.Auto,) * grid.ndim
    return Placement(
        mesh=Mesh(grid, tuple(sizes), axis_types=axis_types),
        rules=tuple(
            (
                pattern,
                spec
                if isinstance(spec, PartitionSpec)
                else PartitionSpec(*([spec] if isinstance(spec, str) else spec)),
            )
            for pattern, spec in rules
        ),
    )
