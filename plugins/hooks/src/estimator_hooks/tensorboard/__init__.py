"""Data for the pages of TensorBoard: hyperparameters, the graph, histograms of the weights."""

from estimator_hooks.tensorboard.graph import GraphHook
from estimator_hooks.tensorboard.histograms import VariableHistogramsHook
from estimator_hooks.tensorboard.hparams import HParamsHook

__all__ = ["GraphHook", "HParamsHook", "VariableHistogramsHook"]
