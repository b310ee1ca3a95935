"""The initial values of a model from pretrained weights. The log says what fits and what is left out."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_canned_bert.encoder.variables import OUTPUT_BIAS, OUTPUT_WEIGHTS
from estimator_canned_bert.weights.read import read_checkpoint
from estimator_core.errors import ArgumentError

_log = logging.getLogger("estimator_canned_bert")
_MAY_BE_MISSING = (OUTPUT_WEIGHTS, OUTPUT_BIAS, "bert/pooler/dense/kernel", "bert/pooler/dense/bias")


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The way in which the arrays of a checkpoint fit a model.

    Args:
        assignment: the names of variables by the names in the checkpoint.
        fresh: the reason for each variable that keeps its initialiser.
        unused: the arrays of the checkpoint without a variable in the model.
    """

    assignment: Mapping[str, str]
    fresh: Mapping[str, str]
    unused: tuple[str, ...]


def init_from_pretrained(checkpoint: str | os.PathLike[str]) -> None:
    """Takes the first values of all variables declared so far from pretrained weights. Call it inside model_fn.

    It reads the formats of `read_checkpoint`, and has an effect only in a run without its own checkpoint. An output
    layer for other classes and a missing pooler keep their initialisers, and the log says so. Any other missing array
    is refused.

    Args:
        checkpoint: see `read_checkpoint`.

    Raises:
        ArgumentError: there are no weights, or they are of another encoder or have a vocabulary of another size.
        CheckpointCorruptError: the weights are damaged.
    """
    path = os.fspath(checkpoint)
    reported: list[str] = []
    variables = [spec for spec in ec.trainable_variables() if not spec.name.endswith(("/lora_a", "/lora_b"))]

    def reader(path: str) -> Mapping[str, np.ndarray]:
        # The file is read at each request: the request lives as long as the Estimator, but the weights need not.
        tensors = read_checkpoint(path)
        fit = match(variables, tensors, path)
        if not reported:
            reported.append(path)
            _report(fit, path)
        return {name: tensors[name] for name in fit.assignment}

    assignment, _ = ec.get_assignment_map_from_checkpoint(variables, path, reader=reader)
    ec.init_from_checkpoint(path, assignment, reader=reader)


def match(variables: Any, tensors: Mapping[str, np.ndarray], path: str) -> Fit:
    """Compares a model with a checkpoint.

    Args:
        variables: objects with `name` and `shape`.
        tensors: the arrays of the checkpoint by name.
        path: the path of the checkpoint, for messages.

    Raises:
        ArgumentError: the checkpoint is of another encoder, or holds low-rank additions.
    """
    if any(name.endswith("/lora_a") for name in tensors):
        raise ArgumentError(
            f"The weights at {path} have low-rank additions, which cannot be read. Write the merged weights with "
            "--export-hugging-face or merge_lora, and start from those."
        )
    assignment: dict[str, str] = {}
    fresh: dict[str, str] = {}
    for spec in variables:
        array = tensors.get(spec.name)
        if array is None and spec.name in _MAY_BE_MISSING:
            fresh[spec.name] = "not in the checkpoint"
        elif array is None:
            raise ArgumentError(
                f"The weights at {path} lack {spec.name!r}: they are of another architecture or have fewer layers. "
                "Read the configuration next to them: BertConfig.from_pretrained."
            )
        elif tuple(array.shape) == tuple(spec.shape):
            assignment[spec.name] = spec.name
        elif spec.name in (OUTPUT_WEIGHTS, OUTPUT_BIAS):
            fresh[spec.name] = f"it has shape {list(array.shape)} in the checkpoint and {list(spec.shape)} in the model"
        else:
            raise ArgumentError(_other_shape(spec, array, path))
    return Fit(assignment=assignment, fresh=fresh, unused=tuple(sorted(set(tensors) - {s.name for s in variables})))


def _other_shape(spec: Any, array: np.ndarray, path: str) -> str:
    if spec.name.endswith("word_embeddings"):
        return (
            f"The weights at {path} have {array.shape[0]} tokens of {array.shape[1]} numbers, but the configuration "
            "has "
            f"{spec.shape[0]} of {spec.shape[1]}. Use the vocabulary and the configuration that belong to the weights, "
            "or carry the rows over with ec.WarmStartSettings and ec.VocabInfo."
        )
    return (
        f"The weights at {path} have {spec.name!r} of shape {list(array.shape)}, but the configuration requires "
        f"{list(spec.shape)}. Read the configuration next to the weights: BertConfig.from_pretrained."
    )


def _report(fit: Fit, path: str) -> None:
    _log.info("Loaded %d variables from %s.", len(fit.assignment), path)
    for name, reason in fit.fresh.items():
        _log.warning("%s keeps its initialiser: %s.", name, reason)
    if fit.unused:
        _log.info("Not used from %s: %s.", path, ", ".join(fit.unused))
