"""Exponential moving averages of the weights: kept by the optimizer, used in evaluation, prediction and export."""

from estimator_hooks.averaging.checkpoints import load_averaged_variables, write_averaged_checkpoint
from estimator_hooks.averaging.hook import AveragedWeightsEvaluatorHook
from estimator_hooks.averaging.transformation import ema_of_weights

__all__ = [
    "AveragedWeightsEvaluatorHook",
    "ema_of_weights",
    "load_averaged_variables",
    "write_averaged_checkpoint",
]
