"""Traces of an Estimator without values: for devices that need not be there, and before a run begins."""

from estimator_core._loop.rehearsal import Rehearsal
from estimator_core._loop.trace import TracedStep, trace_step

__all__ = [
    "Rehearsal",
    "TracedStep",
    "trace_step",
]
