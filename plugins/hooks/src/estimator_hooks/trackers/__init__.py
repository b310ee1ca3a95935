"""Experiment trackers: the curves of a run in MLflow, Weights & Biases, or a tracker of your own."""

from estimator_hooks.trackers.hook import TrackerHook
from estimator_hooks.trackers.mlflow import MlflowTracker
from estimator_hooks.trackers.tracker import TrackedRun, Tracker
from estimator_hooks.trackers.wandb import WandbTracker

__all__ = ["MlflowTracker", "TrackedRun", "Tracker", "TrackerHook", "WandbTracker"]
