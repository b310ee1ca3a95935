"""The updates that the optimizer of a train_op makes from known gradients."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax

from estimator_migration.proving.computed import Arrays


def updates_of(train_op: Any, first: Arrays, gradients: Sequence[Arrays], names: Mapping[str, str]) -> list[Arrays]:
    """Returns the variables after each step, from the same gradients as the other side.

    Args:
        train_op: an optax transformation, `ec.minimize(...)` or `ec.group(...)`. For any other the result is empty.
        first: the trained variables at the start.
        gradients: the gradients of each step, by name there. A variable without a gradient stays as it is.
        names: the names that differ: the name there, by name here.

    Example:
        >>> steps = updates_of(optax.sgd(0.5), {"w": np.ones(2)}, [{"w": np.ones(2)}] * 2, {})
        >>> [step["w"].tolist() for step in steps]
        [[0.5, 0.5], [0.0, 0.0]]
    """
    members = _members(train_op)
    own = [
        (transformation, [name for name in first if re.fullmatch(pattern, name) and _moved(name, gradients, names)])
        for transformation, pattern in members
    ]
    values: dict[str, Any] = {name: jnp.asarray(value) for name, value in first.items()}
    states = [transformation.init({name: values[name] for name in paths}) for transformation, paths in own]
    found: list[Arrays] = []
    for slopes in gradients if members else ():
        for at, (transformation, paths) in enumerate(own):
            given = {name: jnp.asarray(slopes[names.get(name, name)]) for name in paths}
            before = {name: values[name] for name in paths}
            change, states[at] = transformation.update(given, states[at], before)
            values.update(_applied(before, change))
        found.append({name: np.asarray(value) for name, value in values.items()})
    return found


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
