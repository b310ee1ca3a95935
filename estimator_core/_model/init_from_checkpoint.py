"""`ec.init_from_checkpoint`: first values asked for inside model_fn."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from estimator_core._model.checkpoint_values import check_shape, missing_tensor, near
from estimator_core._model.init_request import CheckpointReader, InitRequest
from estimator_core._model.load_report import LoadedVariable, LoadReport
from estimator_core._model.scope import active_scope
from estimator_core._model.variables import VariableSpec
from estimator_core.errors import ArgumentTypeError, VariableError

#: Names in the checkpoint to names or specs of variables; pairs, where one name feeds several variables.
AssignmentMap: TypeAlias = "Mapping[str, Any] | Sequence[tuple[str, Any]]"


def init_from_checkpoint(
    ckpt_dir_or_file: str | os.PathLike[str],
    assignment_map: AssignmentMap,
    *,
    reader: CheckpointReader | None = None,
) -> LoadReport:
    """Takes first values of variables declared so far from a checkpoint.

    It is a request: values are loaded once, before the first step of a run without a checkpoint of its own, after the
    initialisers and `warm_start_from`. Names and shapes are checked at once.

    Args:
        ckpt_dir_or_file: a checkpoint or a directory with checkpoints.
        assignment_map: a dict or pairs, in any of these forms::

            {"old/": "new/"}             all variables declared under new/, from the same names under old/
            {"/": "new/"}, {"old/": "/"} the same, with all names of the checkpoint or all variables
            {"old/kernel": "new/kernel"} one variable, by path
            {"old/kernel": variable}     one of ec.trainable_variables(), or a list of them

        reader: gives the arrays of a checkpoint of another kind by name, from `ckpt_dir_or_file`; None: it is one of
            ours.

    Returns:
        What will be loaded.

    Raises:
        ModelFnError: called outside model_fn.
        VariableError: a variable is not declared, a tensor is not in the checkpoint, shapes differ, or a scope holds
        no variable.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     ...  # declare the variables, then
        ...     init_from_checkpoint("runs/old", {"encoder/": "text_encoder/"})

    Source: `tf.compat.v1.train.init_from_checkpoint`; there, a scope without variables is ignored in silence.
    """
    scope = active_scope("ec.init_from_checkpoint")
    checkpoint = os.fspath(ckpt_dir_or_file)
    assignments = tuple(_resolve(assignment_map, scope.met))
    if scope.reader is not None:
        tensors = (reader or scope.reader)(checkpoint)
        for tensor, path in assignments:
            if tensor not in tensors:
                raise missing_tensor(tensor, path, checkpoint, tensors)
            check_shape(scope.met[path], tensor, tensors[tensor], checkpoint)
    if assignments:
        scope.requests.append(InitRequest(checkpoint=checkpoint, assignments=assignments, reader=reader))
    return LoadReport(
        tuple(
            LoadedVariable(variable=path, shape=scope.met[path].shape, source=checkpoint, tensor=tensor, loaded=True)
            for tensor, path in assignments
        )
    )


def get_assignment_map_from_checkpoint(
    tvars: Iterable[VariableSpec],
    init_checkpoint: str | os.PathLike[str],
    *,
    reader: CheckpointReader | None = None,
) -> tuple[dict[str, str], dict[str, int]]:
    """Maps the variables that a checkpoint has to themselves, for `init_from_checkpoint`.

    Args:
        tvars: variables, as `ec.trainable_variables` lists them.
        init_checkpoint: a checkpoint or a directory with checkpoints.
        reader: gives the arrays of a checkpoint of another kind; None: it is one of ours.

    Returns:
        The assignment map, and a dict whose keys are the paths it holds.

    Raises:
        ModelFnError: called outside model_fn.
        VariableError: the checkpoint has none of the variables.

    Source: `modeling.get_assignment_map_from_checkpoint` of google-research/bert; there, nothing in common is no error.
    """
    scope = active_scope("ec.get_assignment_map_from_checkpoint")
    names = [spec.name for spec in tvars]
    # Where nothing is going to be initialised the checkpoint is not read: it need not exist any more.
    if scope.reader is not None:
        tensors = (reader or scope.reader)(os.fspath(init_checkpoint))
        common = [name for name in names if name in tensors]
        if names and not common:
            raise VariableError(
                f"The checkpoint {os.fspath(init_checkpoint)} has none of the {len(names)} variables, such as "
                f"{names[0]!r}. "
                f"{near(names[0], tensors)}"
            )
        names = common
    return dict(zip(names, names, strict=True)), dict.fromkeys(names, 1)


def _resolve(assignment_map: Any, declared: Mapping[str, VariableSpec]) -> Iterable[tuple[str, str]]:
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
    found = [path for path in declared if path.startswith(new)]
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
