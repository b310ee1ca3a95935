"""The quantities that one program computed for a proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Arrays by name.
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """Results on the evaluation batches, with one state of the weights.

    Args:
        metrics: the metrics by name, including "loss".
        predictions: the predictions of all batches by key, or under "" for a prediction that is one array.
    """

    metrics: Arrays
    predictions: Arrays


@dataclass(frozen=True, kw_only=True)
class Computed:
    """The quantities of one side.

    Args:
        losses: the loss of each training step.
        gradients: the gradients of the loss by trainable variable, for each step. A recording of an earlier version has
            only those of the first step.
        weights: the values of all variables, at the start and after each step.
        start: the results before the first step.
        end: the results after the last step.
        trainable: the names of the trainable variables.
        random: whether the loss of one batch with the same weights differs when it is computed again.
    """

    losses: Sequence[float]
    gradients: Sequence[Arrays]
    weights: Sequence[Arrays]
    start: Evaluated
    end: Evaluated
    trainable: frozenset[str]
    random: bool


def joined(batches: Sequence[Any]) -> Arrays:
    """Returns the predictions of batches as one array for each key."""
    dicts = [dict(batch) if isinstance(batch, Mapping) else {"": batch} for batch in batches]
    return {str(key): np.concatenate([np.asarray(each[key]) for each in dicts]) for key in dicts[0]}
