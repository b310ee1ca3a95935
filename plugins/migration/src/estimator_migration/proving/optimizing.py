"""The updates that the optimizer of a train_op makes from known gradients."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from estimator_migration.proving.computed import Arrays


def updates_of(
    train_op: Any,
    first: Arrays,
    gradients: Sequence[Arrays],
    names: Mapping[str, str],
    rows: Sequence[Arrays] | None = None,
) -> list[Arrays]:
    """Returns the variables after each step, from the same gradients as the other side.

    Args:
        train_op: an optax transformation, `ec.minimize(...)` or `ec.group(...)`. For any other the result is empty.
        first: the trained variables at the start.
        gradients: the gradients of each step, by name there. A variable without a gradient stays as it is.
        names: the names that differ: the name there, by name here.
        rows: the rows of each row-sparse table that each step touches. None: no table is row-sparse.

    Example:
        >>> steps = updates_of(optax.sgd(0.5), {"w": np.ones(2)}, [{"w": np.ones(2)}] * 2, {})
        >>> [step["w"].tolist() for step in steps]
        [[0.5, 0.5], [0.0, 0.0]]
    """
    members, tables = _members(train_op), frozenset(rows[0] if rows else ())
    own = [
        (transformation, [name for name in first if re.fullmatch(pattern, name) and _moved(name, gradients, names)])
        for transformation, pattern in members
    ]
    groups = [group for transformation, paths in own for group in _groups(transformation, paths, tables)]
    values: dict[str, Any] = {name: jnp.asarray(value) for name, value in first.items()}
    states = [group.first({name: values[name] for name in group.paths}) for group in groups]
    found: list[Arrays] = []
    for step, slopes in enumerate(gradients if members else ()):
        for at, group in enumerate(groups):
            given = {name: jnp.asarray(slopes[names.get(name, name)]) for name in group.paths}
            before = {name: values[name] for name in group.paths}
            touched = rows[step][group.paths[0]] if rows and group.table else None
            change, states[at] = group.update(given, states[at], before, touched)
            values.update(change)
        found.append({name: np.asarray(value) for name, value in values.items()})
    return found


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Variables that a transformation updates together: those without rows, or one row-sparse table."""

    transformation: optax.GradientTransformation
    paths: Sequence[str]
    table: bool

    def first(self, values: Mapping[str, Any]) -> Any:
        return self.transformation.init(values[self.paths[0]] if self.table else values)

    def update(
        self, given: Mapping[str, Any], state: Any, before: Mapping[str, Any], rows: Any
    ) -> tuple[Mapping[str, Any], Any]:
        """Returns the new values and the new state. A table and its slots change in some rows only."""
        if not self.table:
            change, state = self.transformation.update(given, state, before)
            return _applied(before, change), state
        (name,) = self.paths
        table = before[name]

        def gather(leaf: Any) -> Any:
            return leaf[rows] if leaf.shape == table.shape else leaf

        def scatter(old: Any, new: Any) -> Any:
            return old.at[rows].set(new) if old.shape == table.shape else new

        change, some = self.transformation.update(given[name][rows], jax.tree.map(gather, state), table[rows])
        moved = _applied({name: table[rows]}, {name: change})[name]
        return {name: scatter(table, moved)}, jax.tree.map(scatter, state, some)


def _groups(transformation: Any, paths: Sequence[str], tables: frozenset[str]) -> list[_Group]:
    dense = [name for name in paths if name not in tables]
    apart = [_Group(transformation=transformation, paths=[name], table=True) for name in paths if name in tables]
    return [_Group(transformation=transformation, paths=dense, table=False), *apart]


_applied: Callable[[Any, Any], Mapping[str, Any]] = optax.apply_updates  # pyright: ignore[reportAssignmentType]


def _moved(name: str, gradients: Sequence[Arrays], names: Mapping[str, str]) -> bool:
    return names.get(name, name) in gradients[0]


def _members(train_op: Any) -> list[tuple[Any, str]]:
    """Returns the transformations, each with the pattern of its variables."""
    if hasattr(train_op, "members"):
        return [(member.transformation, member.variables) for member in train_op.members]
    if hasattr(train_op, "transformation"):
        return [(train_op.transformation, train_op.variables)]
    is_rule = callable(train_op) or not isinstance(train_op, tuple)
    return [] if is_rule else [(train_op, ".*")]
