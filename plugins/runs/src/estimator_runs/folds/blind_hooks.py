"""Hooks that wait for evaluations. A fold has no evaluations during training: it is evaluated once, at its end."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

_log = logging.getLogger("estimator_core")
_WAITING, _EVALUATING = "estimator_hooks.early_stopping", "estimator_hooks.in_memory_evaluator"


def warn_of_blind_hooks(hooks: Sequence[Any], steps: int) -> None:
    """Names the hooks of early stopping in the log, unless another hook evaluates.

    Args:
        hooks: the hooks of the training of a fold.
        steps: the last step of the training.
    """
    modules = [f"{type(hook).__module__}." for hook in hooks]
    names = [
        type(hook).__name__ for hook, module in zip(hooks, modules, strict=True) if module.startswith(f"{_WAITING}.")
    ]
    if names and not any(module.startswith(f"{_EVALUATING}.") for module in modules):
        _log.warning(
            "%s: a fold is evaluated once, at its end, so early stopping sees no evaluation while it trains. Each fold "
            "trains to step %d, unless something else stops it.",
            ", ".join(dict.fromkeys(names)),
            steps,
        )
