"""`learn_runner.run` and `learn_runner.tune`, from the package estimator-experiment."""

from estimator_core import _moved

__getattr__ = _moved.moved_module("learn_runner")
