"""The optimizer part of a step: initial slots, and new variables from gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.core import Tracer

from estimator_core._jax_values import computed_by_host, is_in_host_memory
from estimator_core._step import sparse
from estimator_core._step.precision import initial_loss_scale
from estimator_core._step.train_op import CustomTrainOp, Minimize, TrainOp, assign_paths
from estimator_core._types import Arrays, PyTree
from estimator_core.errors import ModelFnError

_LEAK = (
    "The optimizer depends on an array computed inside model_fn. train_op may depend on params, mode and the step "
    "only: give the learning rate as a number or as an optax schedule "
    "(optax.inject_hyperparams(optax.adam)(learning_rate=schedule) also logs it)."
)
_CALLED_SO = (
    "This happened where train_op is applied. Its optimizer is called as update(gradients, state, variables, "
    "value=loss, grad=gradients), where gradients and variables are dicts with an array for each variable. An "
    "optimizer that needs more, such as L-BFGS (a function of the loss), is called by your own ec.custom_train_op."
)


class MemberState(NamedTuple):
    """The slots of one `minimize`: those of its dense variables together, and those of each row-sparse table
    separately.
    """

    dense: PyTree
    tables: dict[str, PyTree]


def init_opt_state(
    train_op: TrainOp, variables: Mapping[str, jax.Array], tables: Container[str], *, scaled: bool = False
) -> PyTree:
    """Returns the first optimizer state, followed by the scale of the loss if `scaled`.

    Raises:
        ModelFnError: the optimizer was built from arrays of the trace, or its variables match nothing.
    """
    scale = (initial_loss_scale(),) if scaled else ()
    try:
        if isinstance(train_op, CustomTrainOp):
            slots = train_op.init(dict(variables))
            return (slots, *scale) if scaled else slots
        paths = assign_paths(train_op.members, list(variables))
        members = zip(train_op.members, paths, strict=True)
        return (*(_member_state(member, own, variables, tables) for member, own in members), *scale)
    except jax.errors.UnexpectedTracerError as error:
        raise ModelFnError(_LEAK) from error


def _member_state(
    member: Minimize, paths: Sequence[str], variables: Mapping[str, jax.Array], tables: Container[str]
) -> MemberState:
    dense = {name: variables[name] for name in paths if name not in tables}
    return MemberState(
        member.transformation.init(dense),
        {name: _table_state(member, name, variables[name]) for name in paths if name in tables},
    )


def _table_state(member: Minimize, name: str, table: jax.Array) -> PyTree:
    """Returns the first slots of a table.

    They are in the same memory, which may be that of the host. Scalars are on the device.
    """
    if not is_in_host_memory(table):
        slots = member.transformation.init(table)
        _check_row_by_row(name, table, slots)
        return slots
    return jax.tree.map(
        lambda leaf: leaf if leaf.shape == table.shape else jax.device_put(leaf, jax.memory.Space.Device),
        computed_by_host(member.transformation.init)(table),
    )


#: States of optax that keep gradients for a later step, which updates other rows: `optax.MultiSteps` and
#: `optax.apply_every`.
_FOR_LATER = (optax.MultiStepsState, optax.ApplyEvery)
_WHOLE = "ec.get_variable instead of ec.sparse_lookup"


def _check_row_by_row(name: str, table: jax.Array, slots: PyTree) -> None:
    """Refuses an optimizer that cannot update only some rows of a table."""
    nodes = jax.tree.leaves(slots, is_leaf=lambda node: isinstance(node, _FOR_LATER))
    if any(isinstance(node, _FOR_LATER) for node in nodes):
        raise ModelFnError(
            "The optimizer keeps gradients for a later step (optax.MultiSteps, optax.apply_every). A step updates only "
            f"the rows of {name!r} that its batch looks up: gradients of other rows would be lost. Use "
            f"RunConfig(accumulate_steps=...), which divides one batch, or {_WHOLE}."
        )
    rows = table.shape[0]
    for slot in jax.tree.leaves(slots):
        shape = jnp.shape(slot)  # () also for a Python number
        if rows > 1 and rows in shape and shape != table.shape and jnp.issubdtype(slot.dtype, jnp.floating):
            raise ModelFnError(_mixes(name, f"a slot for {table.shape} has {shape}"))


def _mixes(name: str, how: str) -> str:
    return (
        f"The optimizer mixes the rows of {name!r} ({how}), and a step updates only those that its batch looks up. "
        f"Use one with slots for each element, such as optax.adam, or {_WHOLE}."
    )


def reject_leaks(train_op: TrainOp) -> None:
    """Refuses an optimizer with arrays of the trace in which it was created.

    It would use their values forever, or fail much later.
    """
    own = isinstance(train_op, CustomTrainOp)
    rules = [train_op] if own else [member.transformation for member in train_op.members]
    functions = [function for rule in rules for function in (rule.init, rule.update)]
    if any(_carries_tracer(function, set()) for function in functions):
        raise ModelFnError(_LEAK)


#: Attributes of functions and of `functools.partial` that hold values.
_HOLDS_VALUES = ("func", "args", "keywords", "__wrapped__", "__defaults__", "__kwdefaults__", "__self__")


def _carries_tracer(value: object, seen: set[int]) -> bool:
    """Returns whether a value, or a function's closure and defaults, hold a traced array.

    Walks containers and functions.
    """
    if isinstance(value, Tracer):
        return True
    if id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value, Mapping):
        return any(_carries_tracer(item, seen) for item in value.values())
    if isinstance(value, (tuple, list, set, frozenset)):
        return any(_carries_tracer(item, seen) for item in value)
    held: list[Any] = [getattr(value, name, None) for name in _HOLDS_VALUES] if callable(value) else []
    for cell in getattr(value, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # a cell that is not filled yet
            held.append(cell.cell_contents)
    return any(_carries_tracer(item, seen) for item in held if item is not None)


def apply_member(
    member: Minimize,
    state: MemberState,
    variables: Arrays,
    gradients: Mapping[str, jax.Array],
    accesses: Mapping[str, sparse.RowAccess],
    sparse_ids: Mapping[str, jax.Array],
    sparse_gradients: Mapping[str, jax.Array],
    loss: jax.Array,
) -> tuple[Arrays, MemberState]:
    """Returns the new values of one member's variables, and its new slots.

    The transformation is called as `update(gradients, state, variables, value=loss, ...)`, with support for extra
    arguments.
    """
    transformation = optax.with_extra_args_support(member.transformation)
    dense = {name: variables[name] for name in gradients}
    try:
        updates, dense_state = transformation.update(
            dict(gradients), state.dense, dense, value=loss, grad=dict(gradients)
        )
        new_dense: PyTree = optax.apply_updates(dense, updates)
        changed: Arrays = dict(new_dense)
        tables: dict[str, PyTree] = {}
        for name, slots in state.tables.items():
            ids, rows = sparse.of_table(name, sparse_ids, sparse_gradients)
            changed[name], tables[name] = accesses[name].update(
                transformation, variables[name], slots, ids, rows, value=loss
            )
            for before, after in zip(jax.tree.leaves(slots), jax.tree.leaves(tables[name]), strict=True):
                if before.shape != after.shape:
                    raise ModelFnError(_mixes(name, f"a slot of {before.shape} becomes {after.shape}"))
    except jax.errors.UnexpectedTracerError as error:
        raise ModelFnError(_LEAK) from error
    except (AttributeError, TypeError) as error:
        error.add_note(_CALLED_SO)
        raise
    return changed, MemberState(dense_state, tables)
