"""The training step of an Estimator, traced for devices that need not exist; runs whose steps other code makes."""

from estimator_core._door import training_batches
from estimator_core._loop.landing import land
from estimator_core._loop.trace import TracedStep, trace_step

__all__ = [
    "TracedStep",
    "land",
    "trace_step",
    "training_batches",
]
