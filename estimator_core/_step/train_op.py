"""Converts everything that a model_fn may return as `train_op` to one form: a list of (loss, transformation, paths)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import optax

from estimator_core._types import Arrays, PyTree
from estimator_core.errors import ModelFnError

GradFn = Callable[[Arrays], tuple[jax.Array, Arrays]]


@dataclass(frozen=True)
class Minimize:
    """One loss, the transformation that reduces it, and the variables that it changes."""

    loss: jax.Array
    transformation: optax.GradientTransformation
    variables: str


@dataclass(frozen=True)
class Group:
    """Several `Minimize` over disjoint variables, applied in one step."""

    members: tuple[Minimize, ...]


@dataclass(frozen=True)
class CustomTrainOp:
    """A user's own update rule."""

    update: Callable[[Arrays, PyTree, GradFn], tuple[Arrays, PyTree]]
    init: Callable[[Arrays], PyTree]


TrainOp = Group | CustomTrainOp


def minimize(loss: jax.Array, transformation: optax.GradientTransformation, variables: str = ".*") -> Minimize:
    """Returns a train_op that minimises `loss` by changing only the variables whose whole name matches a regex.

    Only matching variables are differentiated and have optimizer slots. The others do not change.

    Args:
        loss: a float scalar.
        transformation: an optax transformation.
        variables: a regular expression, matched against the whole name (`re.fullmatch`).

    Raises:
        ModelFnError: the transformation or the regex cannot be used.

    Example:
        >>> minimize(0.0, optax.sgd(0.1), variables="head/.*").variables
        'head/.*'
    """
    _check_transformation(transformation)
    try:
        re.compile(variables)
    except (re.error, TypeError) as error:
        raise ModelFnError(
            f"ec.minimize: variables must be a regular expression, given {variables!r}: {error}."
        ) from error
    return Minimize(loss, _plain(transformation), variables)


def group(*members: Minimize) -> Group:
    """Returns a train_op of several `minimize` over disjoint variables, for example for the two losses of a GAN, or two
    optimizers.

    Example:
        >>> len(group(minimize(0.0, optax.sgd(0.1), "a/.*"), minimize(0.0, optax.adam(0.1), "b/.*")).members)
        2
    """
    if not members or not all(isinstance(member, Minimize) for member in members):
        raise ModelFnError(f"ec.group takes one or more ec.minimize(...), given: {members!r}.")
    return Group(tuple(members))


def custom_train_op(
    update: Callable[[Arrays, PyTree, GradFn], tuple[Arrays, PyTree]],
    init: Callable[[Arrays], PyTree] = lambda variables: (),
) -> CustomTrainOp:
    """Returns a train_op written by the user.

    Args:
        update: `(variables, opt_state, grad_fn) -> (variables, opt_state)`, traced; `grad_fn(variables)` returns
            `(loss, gradients)` at any point.
        init: a function that computes the first opt_state from the variables.

    Example:
        >>> def descend(variables, opt_state, grad_fn):
        ...     loss, gradients = grad_fn(variables)
        ...     return {name: value - 0.1 * gradients[name] for name, value in variables.items()}, opt_state
        >>> custom_train_op(descend).init({})
        ()
    """
    return CustomTrainOp(update, init)


def normalize(train_op: Any, loss: Any) -> TrainOp:
    """Returns any accepted form of train_op as a `Group` or a `CustomTrainOp`."""
    if isinstance(train_op, (Group, CustomTrainOp)):
        return train_op
    if isinstance(train_op, Minimize):
        return Group((train_op,))
    if _is_transformation(train_op):
        return Group((Minimize(loss, _plain(train_op), ".*"),))
    if _is_update(train_op):
        return custom_train_op(train_op)
    raise ModelFnError(
        "train_op must be an optax.GradientTransformation, ec.minimize(...), ec.group(...) or a function (variables, "
        f"opt_state, grad_fn), given: {train_op!r}. An optimizer is made by calling it: optax.adam(1e-3)."
    )


def assign_paths(members: Sequence[Minimize], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the variable names that each member changes.

    Raises:
        ModelFnError: a member changes none, or two members change the same one.
    """
    paths = [tuple(name for name in names if re.fullmatch(member.variables, name)) for member in members]
    for member, matched in zip(members, paths, strict=True):
        if not matched:
            raise ModelFnError(
                f"ec.minimize: no trainable variable matches {member.variables!r}. Trainable variables: "
                f"{sorted(names)}."
            )
    seen: dict[str, int] = {}
    for index, matched in enumerate(paths):
        for name in matched:
            if name in seen:
                first, second = members[seen[name]].variables, members[index].variables
                raise ModelFnError(
                    f"ec.group: variable {name!r} is changed by two members, {first!r} and {second!r}. Their variables "
                    "must be disjoint."
                )
            seen[name] = index
    return paths


def hyperparameters(opt_state: PyTree) -> dict[str, Any]:
    """Returns every scalar that `optax.inject_hyperparams` put into an optimizer state, by name.

    A later one with the same name gets a number.
    """
    return {name: value for name, (value, _) in _hyperparameters(opt_state).items()}


def hyperparameter_kinds(opt_state: PyTree) -> dict[str, str]:
    """Returns the kind of each hyperparameter as an output: "scalar", or "constant" if no schedule changes it.

    Learning rates are always scalars, because users look for their curves.
    """
    return {
        name: "scalar" if scheduled or name.startswith("learning_rate") else "constant"
        for name, (_, scheduled) in _hyperparameters(opt_state).items()
    }


def _hyperparameters(opt_state: PyTree) -> dict[str, tuple[Any, bool]]:
    """Returns the values, and whether a schedule changes each."""

    def has_hyperparameters(node: object) -> bool:
        return isinstance(getattr(node, "hyperparams", None), Mapping)

    found: dict[str, tuple[Any, bool]] = {}
    for node in jax.tree_util.tree_leaves(opt_state, is_leaf=has_hyperparameters):
        if not has_hyperparameters(node):
            continue
        scheduled = getattr(node, "hyperparams_states", {})
        scalars = {
            name: (value, name in scheduled)
            for name, value in node.hyperparams.items()
            if getattr(value, "shape", None) == ()
        }
        for name, value in {**scalars, **_hyperparameters(node.inner_state)}.items():
            unique, number = name, 1
            while unique in found:
                number += 1
                unique = f"{name}_{number}"
            found[unique] = value
    return found


def _is_transformation(value: object) -> bool:
    return (
        callable(getattr(value, "init", None))
        and callable(getattr(value, "update", None))
        and not isinstance(value, type)
    )


def _plain(value: Any) -> optax.GradientTransformation:
    """Returns the transformation of an `optax.MultiSteps`, which is not a transformation itself.

    Returns other values unchanged.
    """
    return value.gradient_transformation() if isinstance(value, optax.MultiSteps) else value


def _is_update(value: object) -> bool:
    """Returns whether a value is a function of three required arguments. `optax.adam` itself, for example, is not."""
    if not callable(value) or isinstance(value, type):
        return False
    parameters = inspect.signature(value).parameters.values()
    required = [item for item in parameters if item.default is item.empty and item.kind is not item.VAR_KEYWORD]
    return len(required) == 3


def _check_transformation(value: object) -> None:
    if not _is_transformation(value):
        raise ModelFnError(
            f"An optimizer must be an optax.GradientTransformation, given: {value!r}. For example optax.adam(1e-3)."
        )
