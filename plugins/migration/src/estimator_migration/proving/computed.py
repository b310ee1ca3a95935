"""What one program computed for a proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Arrays by name.
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """Results on the evaluation batches, by one state of the weights.

    Args:
        metrics: by name, "loss" among them.
        predictions: of all batches, by key; "" for a prediction that is one array.
    """

    metrics: Arrays
    predictions: Arrays


@dataclass(frozen=True, kw_only=True)
class Computed:
    """The quantities of one side.

    Args:
        losses: of each training step.
        gradients: of the loss of the first step, by trainable variable.
        weights: all variables, at the start and after each step.
        start: before the first step.
        end: after the last.
        trainable: names of the trainable variables.
        random: whether the loss of one batch by the same weights differs between two times.
    """

    losses: Sequence[float]
    gradients: Arrays
    weights: Sequence[Arrays]
    start: Evaluated
    end: Evaluated
    trainable: frozenset[str]
    random: bool


def joined(batches: Sequence[Any]) -> Arrays:
    """Predictions of batches as one array a key."""
    dicts = [dict(batch) if isinstance(batch, Mapping) else {"": batch} for batch in batches]
    return {str(key): np.concatenate([np.asarray(each[key]) for each in dicts]) for key in dicts[0]}
