"""Experiment trackers: send the curves of a run to MLflow, Weights & Biases, Comet, Neptune, or your own tracker."""

from estimator_hooks.trackers.comet import CometTracker
from estimator_hooks.trackers.hook import TrackerHook
from estimator_hooks.trackers.mlflow import MlflowTracker
from estimator_hooks.trackers.neptune import NeptuneTracker
from estimator_hooks.trackers.tracker import TrackedRun, Tracker
from estimator_hooks.trackers.wandb import WandbTracker

__all__ = [
    "CometTracker",
    "MlflowTracker",
    "NeptuneTracker",
    "TrackedRun",
    "Tracker",
    "TrackerHook",
    "WandbTracker",
]
