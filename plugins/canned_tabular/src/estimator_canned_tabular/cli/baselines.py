"""The baseline without a model: the most frequent class, or the mean."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.inputs import DataContract
from estimator_core.modes import ModeKeys
from estimator_inputs import FileInput


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The weighted labels of the rows of a part.

    Attributes:
        rows: the number of rows.
        bad: the number of rows that were left out.
        classes: the total weight of each class.
        weight, total, squares: for labels that are numbers: the sum of the weights, of the labels and of their squares,
            weighted.

    Example:
        >>> training, test = Tally(rows=4, classes={"a": 3.0, "b": 1.0}), Tally(rows=2, classes={"b": 1.0, "a": 1.0})
        >>> training.baseline(test)["accuracy"]
        0.5
    """

    rows: int
    bad: int = 0
    classes: dict[str, float] = field(default_factory=dict[str, float])
    weight: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def baseline(self, test: Tally) -> dict[str, float]:
        """Returns the metrics of a model that always predicts the most frequent class, or the mean, of these rows.

        The metrics are those on other rows.
        """
        if self.weight:
            mean = self.total / self.weight
            return {"average_loss": (test.squares - 2 * mean * test.total) / test.weight + mean**2}
        known, asked = sum(self.classes.values()), sum(test.classes.values())
        often = max(self.classes, key=lambda name: self.classes[name])
        loss = sum(
            -weight * math.log(self.classes.get(name, 0.0) / known) if self.classes.get(name) else math.inf
            for name, weight in test.classes.items()
            if weight
        )
        return {"accuracy": test.classes.get(often, 0.0) / asked, "average_loss": loss / asked}


def tallied(
    source: FileInput,
    contract: DataContract,
    memory: Path,
    weight_column: str | None,
    look: Callable[[Mapping[str, np.ndarray]], None],
) -> Tally:
    """Reads all rows of a part once, and checks each one as training does. `look` receives the features of each batch.

    Raises:
        InputError: a row cannot be used. The message names file, line and column.
    """
    iterator = source()
    batches, convert = contract.open(iterator, mode=ModeKeys.EVAL, memory=memory, check=True)
    checked: Callable[[Any], Any] = (lambda element: element) if convert is None else convert
    rows, classes, sums = 0, defaultdict[str, float](float), np.zeros(3)
    for features, labels in batches:
        checked((features, labels))
        look(features)
        rows += len(labels)
        weights = np.ones(len(labels)) if weight_column is None else features[weight_column].astype(np.float64)
        if labels.dtype.kind in "Ob":
            for name, weight in zip(labels.tolist(), weights.tolist(), strict=True):
                classes[name.decode() if isinstance(name, bytes) else str(name)] += weight
        else:
            numbers = labels.astype(np.float64)
            sums += [weights.sum(), weights @ numbers, weights @ numbers**2]
    weight, total, squares = sums.tolist()
    return Tally(rows=rows, bad=iterator.bad_rows, classes=dict(classes), weight=weight, total=total, squares=squares)
