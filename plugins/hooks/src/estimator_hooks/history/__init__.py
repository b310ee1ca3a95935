"""The history of training and evaluations as tables."""

from estimator_hooks.history.hook import HistoryHook
from estimator_hooks.history.tables import read_history, save_history, to_dataframe

__all__ = ["HistoryHook", "read_history", "save_history", "to_dataframe"]
