"""Data for the plugins of TensorBoard: hyperparameters and the graph."""

from estimator_hooks.tensorboard.graph import GraphHook
from estimator_hooks.tensorboard.hparams import HParamsHook

__all__ = ["GraphHook", "HParamsHook"]
