"""`learn_runner.run` and `learn_runner.tune`: they live in estimator-experiment."""

from estimator_core import _moved

__getattr__ = _moved.moved_module("learn_runner")
