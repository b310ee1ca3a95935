"""Requests for initial values inside model_fn: `ec.init_from_checkpoint`."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jax

from estimator_core.checkpoint import load_variables
from estimator_core.errors import CheckpointNotFoundError, VariableError
from estimator_core.model import InitialValue, VariableSpec, declared_variables, request_initial_values
from estimator_warm_start.assignments import AssignmentMap, assigned
from estimator_warm_start.checkpoint_values import CheckpointReader, check_shape, fitted, missing_tensor, near
from estimator_warm_start.load_report import LoadedVariable, LoadReport

_log = logging.getLogger("estimator_core.warm_start")


@dataclass(frozen=True, kw_only=True)
class CheckpointRequest:
    """A request for initial values from a checkpoint.

    Args:
        checkpoint: the file or directory, as the user wrote it.
        assignments: pairs of a name in the checkpoint and the path of the variable that takes its value.
        reader: the function that reads the checkpoint.
    """

    checkpoint: str
    assignments: tuple[tuple[str, str], ...]
    reader: CheckpointReader

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that the request initialises."""
        return tuple(path for _, path in self.assignments)

    def initial_values(
        self, specs: Mapping[str, VariableSpec], key: Callable[[str], jax.Array]
    ) -> dict[str, InitialValue]:
        """Returns the values of the assignments. If a variable is assigned twice, the later value counts."""
        tensors = self.reader(self.checkpoint)
        values: dict[str, InitialValue] = {}
        for tensor, path in self.assignments:
            value, remark = fitted(specs[path], tensor, tensors, self.checkpoint)
            values[path] = InitialValue(value=value, origin=f"{tensor} of {self.checkpoint}", remark=remark)
        return values


def init_from_checkpoint(
    ckpt_dir_or_file: str | os.PathLike[str],
    assignment_map: AssignmentMap,
    *,
    reader: CheckpointReader | None = None,
) -> LoadReport:
    """Takes initial values of the variables declared so far from a checkpoint.

    The call is a request: values are loaded once, before the first step of a run without a checkpoint of its own, after
    the initialisers and `warm_start_from`. Names and shapes are checked at once.

    Args:
        ckpt_dir_or_file: a checkpoint or a directory with checkpoints.
        assignment_map: a dict or pairs, in any of these forms::

            {"old/": "new/"}             all variables declared under new/, from the same names under old/;
            {"/": "new/"}, {"old/": "/"} the same, with all names of the checkpoint or all variables;
            {"old/kernel": "new/kernel"} one variable, by path;
            {"old/kernel": variable}     one of ec.trainable_variables(), or a list of them

        reader: a function that returns the arrays of a checkpoint of another format by name, from `ckpt_dir_or_file`;
            None: it is a checkpoint of this library.

    Returns:
        The request with the values to load.

    Raises:
        ModelFnError: called outside model_fn.
        VariableError: a variable is not declared, a tensor is not in the checkpoint, shapes differ, or a scope holds
            no variable.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     ...  # declare the variables, then
        ...     init_from_checkpoint("runs/old", {"encoder/": "text_encoder/"})

    Source: `tf.compat.v1.train.init_from_checkpoint`; there, a scope without variables is silently ignored.
    """
    declared = declared_variables("ec.init_from_checkpoint")
    variables = declared.variables
    checkpoint = os.fspath(ckpt_dir_or_file)
    assignments = tuple(assigned(assignment_map, variables))
    read = reader or load_variables
    if declared.fresh:
        tensors = read(checkpoint)
        for tensor, path in assignments:
            if tensor not in tensors:
                raise missing_tensor(tensor, path, checkpoint, tensors)
            check_shape(variables[path], tensor, tensors[tensor], checkpoint)
    if assignments:
        request_initial_values(CheckpointRequest(checkpoint=checkpoint, assignments=assignments, reader=read))
    return LoadReport(
        tuple(
            LoadedVariable(variable=path, shape=variables[path].shape, source=checkpoint, tensor=tensor, loaded=True)
            for tensor, path in assignments
        )
    )


def get_assignment_map_from_checkpoint(
    tvars: Iterable[VariableSpec],
    init_checkpoint: str | os.PathLike[str],
    *,
    reader: CheckpointReader | None = None,
) -> tuple[dict[str, str], dict[str, int]]:
    """Returns an assignment map of the variables that a checkpoint has, each to itself, for `init_from_checkpoint`.

    Args:
        tvars: the variables, as `ec.trainable_variables` lists them.
        init_checkpoint: a checkpoint or a directory with checkpoints.
        reader: a function that returns the arrays of a checkpoint of another format; None: it is a checkpoint of this
            library.

    Returns:
        The assignment map, and a dict whose keys are its paths. Both are the same in every trace of model_fn.

    Raises:
        ModelFnError: called outside model_fn.
        VariableError: the checkpoint has none of the variables.

    Source: `modeling.get_assignment_map_from_checkpoint` of google-research/bert; there, no match is not an error.
    """
    declared_variables("ec.get_assignment_map_from_checkpoint")
    names = [spec.name for spec in tvars]
    checkpoint = os.fspath(init_checkpoint)
    # The map must be the same in every trace, because model_fn may depend on it, for example to freeze loaded
    # variables.
    tensors = _names(checkpoint, reader or load_variables)
    common = names if tensors is None else [name for name in names if name in tensors]
    if names and not common:
        raise VariableError(
            f"The checkpoint {checkpoint} has none of the {len(names)} variables, such as {names[0]!r}. "
            f"{near(names[0], tensors or ())}"
        )
    return dict(zip(common, common, strict=True)), dict.fromkeys(common, 1)


#: The names of checkpoints that this process has read, for traces after a checkpoint was removed.
_known: dict[str, frozenset[str]] = {}


def _names(checkpoint: str, reader: CheckpointReader) -> frozenset[str] | None:
    """Returns the names in a checkpoint; None if nothing must be initialised and the checkpoint no longer exists."""
    place = Path(checkpoint)
    try:
        _known[checkpoint] = _names_now(checkpoint, reader, place.stat().st_mtime_ns if place.exists() else 0)
        return _known[checkpoint]
    except CheckpointNotFoundError:
        if checkpoint in _known:
            return _known[checkpoint]
        if declared_variables("ec.get_assignment_map_from_checkpoint").fresh:
            raise
        _log.warning(
            "ec.get_assignment_map_from_checkpoint: %s no longer exists. The run has its own weights, so the map names "
            "all its variables, even those that the checkpoint lacked.",
            checkpoint,
        )
        return None


@functools.lru_cache(maxsize=8)
def _names_now(checkpoint: str, reader: CheckpointReader, changed: int) -> frozenset[str]:
    """Returns the names, read once for all traces of a model_fn. `changed` is the time of the last change."""
    return frozenset(reader(checkpoint))
