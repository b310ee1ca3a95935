"""Traces of an Estimator without values: before a run, or for devices that need not be there.

Planners compile and count a step. A population makes the steps of several runs together.
"""

from estimator_core._loop.rehearsal import Rehearsal
from estimator_core._loop.trace import TracedStep, land, trace_step

__all__ = [
    "Rehearsal",
    "TracedStep",
    "land",
    "trace_step",
]
