"""`learn_runner.run` and `learn_runner.tune`: they live in estimator-experiment."""

from estimator_core import _moved

__getattr__ = _moved.moved_module(
    "estimator_experiment.learn_runner", "estimator-experiment", "estimator_core.learn_runner"
)
