"""Traces of an Estimator without values: before a run, or for devices that do not have to exist.

Planners compile a step and count its operations. A population runs the steps of several runs together.
"""

from estimator_core._loop.rehearsal import Rehearsal
from estimator_core._loop.trace import TracedStep, land, trace_step

__all__ = [
    "Rehearsal",
    "TracedStep",
    "land",
    "trace_step",
]
