"""Initial values from an earlier model, selected by patterns of names."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from estimator_core.checkpoint import load_variables
from estimator_core.errors import ArgumentError, ArgumentTypeError, VariableError
from estimator_core.model import InitialValue, VariableSpec, check_value
from estimator_warm_start.checkpoint_values import CheckpointReader, fitted, is_record, missing_tensor, near
from estimator_warm_start.load_report import LoadedVariable, LoadReport
from estimator_warm_start.vocabulary import VocabInfo

_log = logging.getLogger("estimator_core.warm_start")
_ALL = ".*"


@dataclass(frozen=True)
class WarmStartSettings:
    """The selection of initial values, and their source.

    Args:
        ckpt_to_initialize_from: a checkpoint, a directory with checkpoints, or an export.
        vars_to_warm_start: the variables to load, including model state such as batch statistics. A regular
            expression that matches from the start of the path, or a list of them, or a list of variables as
            `ec.trainable_variables` returns it. None: only those in `var_name_to_vocab_info`. With the default,
            variables that the checkpoint lacks keep their initialisers. With any other value all must be found.
            Records of bytes, such as `data_contract`, describe one model, and are loaded only by their own name.
        var_name_to_vocab_info: the changes of vocabulary, by the path of the variable.
        var_name_to_prev_var_name: the different names in the checkpoint, by the path of the variable.
        reader: a function that returns the arrays of a checkpoint of another format by name, from
            `ckpt_to_initialize_from`; None: it is a checkpoint of this library.

    Raises:
        ArgumentError: no checkpoint is named, or a regular expression of `vars_to_warm_start` is invalid.
        ArgumentTypeError: `vars_to_warm_start` is of another type.

    Example:
        >>> WarmStartSettings("runs/old", vars_to_warm_start="encoder/").vars_to_warm_start
        'encoder/'

    Source: `tf.estimator.WarmStartSettings`; there, a string selects among trainable variables only.
    """

    ckpt_to_initialize_from: str | os.PathLike[str]
    vars_to_warm_start: str | Sequence[Any] | None = _ALL
    var_name_to_vocab_info: Mapping[str, VocabInfo] = field(default_factory=dict[str, VocabInfo])
    var_name_to_prev_var_name: Mapping[str, str] = field(default_factory=dict[str, str])
    reader: CheckpointReader | None = None

    def __post_init__(self) -> None:
        if not self.ckpt_to_initialize_from:
            raise ArgumentError(
                "`ckpt_to_initialize_from` MUST be set in WarmStartSettings: name a checkpoint or its directory."
            )
        for name in ("var_name_to_vocab_info", "var_name_to_prev_var_name"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, {})
        _patterns(self.vars_to_warm_start)

    def initial_values(
        self, specs: Mapping[str, VariableSpec], key: Callable[[str], jax.Array]
    ) -> dict[str, InitialValue]:
        """Reads the values and logs a table of all variables: loaded or not, with the reason."""
        values, report = warm_start(self, specs, key)
        _log.info("Warm start from %s:\n%s", os.fspath(self.ckpt_to_initialize_from), report)
        return {
            row.variable: InitialValue(
                value=values[row.variable], origin=f"{row.tensor} of {row.source}", remark=row.reason
            )
            for row in report.rows
            if row.loaded
        }


def warm_start(
    settings: WarmStartSettings, specs: Mapping[str, VariableSpec], key: Callable[[str], jax.Array]
) -> tuple[dict[str, np.ndarray], LoadReport]:
    """Reads initial values from an earlier model.

    Args:
        settings: the selection of values, and their source.
        specs: the variables of this model by path.
        key: a function that returns the random key of a path, for `VocabInfo.backup_initializer`.

    Returns:
        The values that replace those of the initialisers, by path, and the outcome for every variable.

    Raises:
        VariableError: a name or shape does not fit, or no value would be loaded.
    """
    checkpoint = os.fspath(settings.ckpt_to_initialize_from)
    chosen = _chosen(settings, specs)
    tensors = (settings.reader or load_variables)(checkpoint)
    values: dict[str, np.ndarray] = {}
    rows: list[LoadedVariable] = []
    _check_shapes(settings, {path: specs[path] for path in specs if path in chosen}, tensors)
    for path, spec in specs.items():
        tensor = settings.var_name_to_prev_var_name.get(path, path)
        renamed = path in settings.var_name_to_prev_var_name or path in settings.var_name_to_vocab_info
        row: dict[str, Any] = {"variable": path, "shape": spec.shape, "source": checkpoint, "tensor": tensor}
        if path not in chosen and is_record(spec):
            rows.append(LoadedVariable(**row, loaded=False, reason="a record of this model"))
        elif path not in chosen:
            rows.append(LoadedVariable(**row, loaded=False, reason="not among vars_to_warm_start"))
        elif tensor not in tensors and settings.vars_to_warm_start == _ALL and not renamed:
            rows.append(LoadedVariable(**row, loaded=False, reason=f"not in {checkpoint}"))
        else:
            values[path], remark = _value(settings, spec, tensor, tensors, checkpoint, key)
            rows.append(LoadedVariable(**row, loaded=True, reason=remark))
    if not chosen:
        raise VariableError(
            f"The warm start from {checkpoint} would load nothing: vars_to_warm_start={settings.vars_to_warm_start!r} "
            "chooses no variable. Give a regular expression, such as '.*', names in var_name_to_vocab_info, or leave "
            "warm_start_from out."
        )
    if not values:
        raise VariableError(
            f"The warm start from {checkpoint} would load nothing: no variable of the model "
            f"({', '.join(sorted(specs)) or 'none'}) is "
            f"both chosen and in the checkpoint ({', '.join(sorted(tensors)) or 'empty'}). Name the differences "
            "in var_name_to_prev_var_name."
        )
    return values, LoadReport(tuple(rows))


def _check_shapes(
    settings: WarmStartSettings, chosen: Mapping[str, VariableSpec], tensors: Mapping[str, np.ndarray]
) -> None:
    """Refuses all variables of other shapes at once. The message contains the settings that load the others."""
    names = {path: settings.var_name_to_prev_var_name.get(path, path) for path in chosen}
    compared = {path for path, tensor in names.items() if tensor in tensors} - set(settings.var_name_to_vocab_info)
    other = [path for path in sorted(compared) if tensors[names[path]].shape != chosen[path].shape]
    if not other:
        return
    checkpoint = os.fspath(settings.ckpt_to_initialize_from)
    lines = [
        f"Shape of variable {path!r} ({list(chosen[path].shape)}) doesn't match with shape of tensor {names[path]!r} "
        f"({list(tensors[names[path]].shape)}) in the checkpoint {checkpoint}."
        for path in other
    ]
    rest = "leave these variables out of vars_to_warm_start"
    if settings.vars_to_warm_start == _ALL:
        absent = other + [path for path, tensor in names.items() if tensor not in tensors]
        pattern = f"(?!({'|'.join(re.escape(path) for path in sorted(absent))})$)"
        rest = f"set vars_to_warm_start={pattern!r} of ec.WarmStartSettings"
    lines.append(f"To load the other variables, {rest}. To move the rows of a changed vocabulary, use ec.VocabInfo.")
    raise VariableError("\n".join(lines))


def _chosen(settings: WarmStartSettings, specs: Mapping[str, VariableSpec]) -> set[str]:
    if settings.vars_to_warm_start is None:
        chosen = set(settings.var_name_to_vocab_info) & set(specs)
    else:
        patterns = _patterns(settings.vars_to_warm_start)
        chosen = {
            path
            for path, spec in specs.items()
            if any(re.match(pattern, path) and (not is_record(spec) or path in _named(pattern)) for pattern in patterns)
        }
        for pattern in patterns:
            if not any(re.match(pattern, path) for path in specs):
                raise VariableError(f"vars_to_warm_start: no variable matches {pattern!r}. {near(pattern, specs)}")
    for argument in ("var_name_to_prev_var_name", "var_name_to_vocab_info"):
        unused = sorted(set(getattr(settings, argument)) - chosen)
        if unused:
            raise VariableError(
                f"You provided the following variables in {argument} that were not used: {', '.join(unused)}. "
                "Perhaps you misspelled them? "
                f"Here is the list of viable variable names: {', '.join(sorted(chosen)) or 'none'}."
            )
    return chosen


def _named(pattern: str) -> tuple[str, str]:
    """Returns the paths that a pattern may be the name of, as text or as `_patterns` writes a variable."""
    return pattern, re.sub(r"\\(.)", r"\1", pattern).removesuffix("$")


def _patterns(chosen: Any) -> list[str]:
    if chosen is None:
        return []
    items = [chosen] if isinstance(chosen, str) else chosen
    if not isinstance(items, Sequence) or not all(isinstance(item, str | VariableSpec) for item in items):
        raise ArgumentTypeError(
            f"vars_to_warm_start must be a regular expression, a list of them or of variables, or None, instead "
            f"got {chosen!r}."
        )
    patterns = [item if isinstance(item, str) else re.escape(item.name) + "$" for item in items]
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ArgumentError(f"vars_to_warm_start: {pattern!r} is not a regular expression: {error}.") from error
    return patterns


def _value(
    settings: WarmStartSettings,
    spec: VariableSpec,
    tensor: str,
    tensors: Mapping[str, np.ndarray],
    checkpoint: str,
    key: Callable[[str], jax.Array],
) -> tuple[np.ndarray, str]:
    vocabulary = settings.var_name_to_vocab_info.get(spec.name)
    if vocabulary is None:
        return fitted(spec, tensor, tensors, checkpoint)
    if tensor not in tensors:
        raise missing_tensor(tensor, spec.name, checkpoint, tensors)
    old = tensors[tensor]
    of_its_kind = np.broadcast_to(np.zeros((), old.dtype), spec.shape)  # the vocabularies check the shape
    check_value(spec, of_its_kind, f"tensor {tensor!r}", f"in the checkpoint {checkpoint}")
    backup = np.zeros(spec.shape, spec.dtype)
    if vocabulary.backup_initializer is not None:
        backup = np.asarray(vocabulary.backup_initializer(key(spec.name), spec.shape, spec.dtype))
        check_value(spec, backup, "the value", "of its backup_initializer")
    return vocabulary.remap(old, spec.shape, backup.astype(spec.dtype)), "vocabulary remapped"
