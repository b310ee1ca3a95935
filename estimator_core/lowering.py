"""The training step of an Estimator, traced for devices that need not be there, and what it takes to make its steps
elsewhere: planners compile and count it, a population makes the steps of several runs together.
"""

from estimator_core._door import training_batches
from estimator_core._loop.landing import land
from estimator_core._loop.trace import TracedStep, trace_step

__all__ = [
    "TracedStep",
    "land",
    "trace_step",
    "training_batches",
]
