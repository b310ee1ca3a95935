"""The table at the end of the command. It compares the model with simpler ones on rows not used in training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

#: The title in the table for each metric. For labels that are numbers, the loss is the mean squared error.
_CLASSES = {"accuracy": "accuracy", "auc": "auc", "average_loss": "loss"}
_NUMBERS = {"average_loss": "rmse"}


def table(results: Mapping[str, Mapping[str, float]], *, classes: bool) -> Iterator[str]:
    """Yields the titles, and a line for each model.

    Example:
        >>> for line in table({"dnn": {"average_loss": 4.0}, "mean": {"average_loss": 9.0}}, classes=False):
        ...     print(line.strip())
        rmse
        dnn            2
        mean           3
    """
    shown = _CLASSES if classes else _NUMBERS
    shown = {name: title for name, title in shown.items() if any(name in found for found in results.values())}
    width = max(map(len, results))
    yield " " * width + "".join(f"{title:>12}" for title in shown.values())
    for model, found in results.items():
        cells = [found.get(name, math.nan) for name in shown]
        numbers = cells if classes else [math.sqrt(max(cell, 0.0)) for cell in cells]
        yield f"{model:<{width}}" + "".join(f"{'' if math.isnan(cell) else f'{cell:.4g}':>12}" for cell in numbers)
