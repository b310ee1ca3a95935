"""The progress of training and evaluation, in a terminal or as plain lines."""

from estimator_hooks.progress.hook import ProgressBarHook

__all__ = ["ProgressBarHook"]
