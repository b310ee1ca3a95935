"""Early stopping, based on the recorded evaluations."""

from estimator_hooks.early_stopping.at_checkpoint import make_stop_at_checkpoint_step_hook
from estimator_hooks.early_stopping.factories import (
    make_early_stopping_hook,
    stop_if_higher_hook,
    stop_if_lower_hook,
    stop_if_no_decrease_hook,
    stop_if_no_increase_hook,
)

__all__ = [
    "make_early_stopping_hook",
    "make_stop_at_checkpoint_step_hook",
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
]
