"""The assignment map of `ec.init_from_checkpoint`: the variables that each name of a checkpoint feeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from estimator_core.errors import ArgumentTypeError, VariableError
from estimator_core.model import VariableSpec
from estimator_warm_start.checkpoint_values import is_record, near

#: A map from names in the checkpoint to names or specs of variables, or pairs, if one name feeds several variables.
AssignmentMap: TypeAlias = "Mapping[str, Any] | Sequence[tuple[str, Any]]"


def assigned(assignment_map: AssignmentMap, declared: Mapping[str, VariableSpec]) -> Iterator[tuple[str, str]]:
    """Yields pairs of a name in the checkpoint and the path of the variable that takes its value.

    Args:
        assignment_map: the map, in any of the forms of `init_from_checkpoint`.
        declared: the declared variables, by path.

    Raises:
        ArgumentTypeError: a part of the map is of another type.
        VariableError: a variable is not declared, or a scope holds none.
    """
    for tensor, target in _pairs(assignment_map):
        for one in target if isinstance(target, list | tuple) else (target,):
            name = one.name if isinstance(one, VariableSpec) else one
            if not isinstance(name, str) or not isinstance(tensor, str):
                raise ArgumentTypeError(
                    f"init_from_checkpoint: the assignment {tensor!r}: {one!r} is of the wrong type. Give a name "
                    "in the checkpoint, and the "
                    "path of a variable, one of ec.trainable_variables(), or a list of these."
                )
            if tensor.endswith("/") or name.endswith("/"):
                yield from _in_scopes(tensor, name, declared)
            elif name in declared:
                yield tensor, name
            else:
                raise VariableError(
                    f"init_from_checkpoint: variable {name!r} is not declared at this point of model_fn. "
                    f"{near(name, declared)}"
                )


def _in_scopes(tensor: str, name: str, declared: Mapping[str, VariableSpec]) -> Iterable[tuple[str, str]]:
    if not (tensor.endswith("/") and name.endswith("/")):
        raise VariableError(
            f"init_from_checkpoint: {tensor!r} is mapped to {name!r}, but only one of them ends in '/'. Map a "
            "scope to a scope ('old/': "
            "'new/') or a variable to a variable ('old/kernel': 'new/kernel')."
        )
    old, new = ("" if part == "/" else part for part in (tensor, name))
    found = [path for path, spec in declared.items() if path.startswith(new) and not is_record(spec)]
    if not found:
        raise VariableError(
            f"init_from_checkpoint: no variable is declared under {name!r} at this point of model_fn. "
            f"{near(name, declared)}"
        )
    return [(old + path.removeprefix(new), path) for path in found]


def _pairs(assignment_map: Any) -> list[tuple[Any, Any]]:
    if isinstance(assignment_map, Mapping):
        return list(assignment_map.items())
    try:
        return [(tensor, target) for tensor, target in assignment_map]
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"init_from_checkpoint: assignment_map is {assignment_map!r}. Give a dict or a list of pairs of a "
            "name in the checkpoint and a variable."
        ) from None
