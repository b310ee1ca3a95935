"""The baseline without a model: the most frequent class, or the mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The result of a model that ignores the texts.

    Attributes:
        told: a sentence about it.
        metrics: its metrics, under the names of the metrics of the model.
    """

    told: str
    metrics: dict[str, float]


def baseline_of(train: Iterable[Any], dev: Iterable[Any], *, regression: bool) -> Baseline:
    """Returns the baseline that the labels of the training rows determine, on the development rows.

    Example:
        >>> from types import SimpleNamespace as Row
        >>> train, dev = ([Row(label=label) for label in labels] for labels in (["a", "b", "a"], ["b", "a"]))
        >>> baseline_of(train, dev, regression=False).told
        "the most frequent class of the training rows, 'a', has an accuracy of 0.5."
    """
    learned, asked = [row.label for row in train], [row.label for row in dev]
    if regression:
        numbers = np.array(asked, np.float64)
        loss = float(np.mean((numbers - np.mean(np.array(learned, np.float64))) ** 2))
        return Baseline(told=f"the mean of the training rows has a loss of {loss:.6g}.", metrics={"eval_loss": loss})
    often = max(sorted(counts := Counter(learned)), key=lambda name: counts[name])
    accuracy = asked.count(often) / len(asked)
    told = f"the most frequent class of the training rows, {often!r}, has an accuracy of {accuracy:.6g}."
    return Baseline(told=told, metrics={"eval_accuracy": accuracy})
