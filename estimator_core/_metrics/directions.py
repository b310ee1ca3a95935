"""Decides whether lower or higher values of a metric are better, by the words of its name."""

from __future__ import annotations

import re

#: Words in the names of metrics whose lower values are better. Of all other metrics, higher values count as better.
_LESS = re.compile(
    "brier|cer|cosh|crossentropy|deviance|divergence|ece|entropy|errors?|hinge|logloss|loss|losses|mae|mape|mse|msle|"
    "nll|perplexity|rmse|rmsle|smape|wer"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def less_is_better(metric: str) -> bool:
    """Returns whether lower values of a metric are better, as for a loss, by its name.

    Example:
        >>> [less_is_better(name) for name in ("average_loss", "val/rmse", "MeanSquaredError", "accuracy", "glossary")]
        [True, True, True, False, False]
    """
    return any(_LESS.fullmatch(word.lower()) for word in _WORD.findall(metric))
