"""The tasks of the encoder: a class or a number for each example."""

from estimator_canned_bert.tasks.classification import Classification
from estimator_canned_bert.tasks.regression import Regression
from estimator_canned_bert.tasks.task import Task

__all__ = ["Classification", "Regression", "Task"]
