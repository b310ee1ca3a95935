"""Which way a metric is good, by the words of its name."""

from __future__ import annotations

import re

#: Parts of names of metrics of which less is better; for all others more is assumed to be better.
_ERRORS = ("loss", "error", "perplexity", "brier", "entropy", "divergence")
#: The same, where they are whole words.
_WHOLE = frozenset(
    ["mae", "mse", "rmse", "msle", "rmsle", "mape", "smape", "nll", "deviance", "wer", "cer", "ece", "hinge", "cosh"]
)


def less_is_better(metric: str) -> bool:
    """Whether the name of a metric says that it measures what is wrong.

    Example:
        >>> [less_is_better(name) for name in ("average_loss", "MAE", "val/rmse", "accuracy", "recall_of_maewest")]
        [True, True, True, False, False]
    """
    name = metric.lower()
    return any(part in name for part in _ERRORS) or not _WHOLE.isdisjoint(re.split(r"[^a-z0-9]+", name))
