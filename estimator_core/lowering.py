"""The training step of an Estimator, traced for devices that need not be there: what planners compile and count."""

from estimator_core._loop.trace import TracedStep, trace_step

__all__ = [
    "TracedStep",
    "trace_step",
]
