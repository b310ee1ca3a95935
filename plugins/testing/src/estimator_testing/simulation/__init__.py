"""Deterministic simulation of faults: programs that share a storage run under every fault, pair and triple of faults.

`simulate` runs one schedule of a `Scenario`, `explore` runs many, and `shrink` reduces a failing one.
"""

from estimator_testing.simulation.disk import Change, Event, Note
from estimator_testing.simulation.explore import Report, explore, shrink
from estimator_testing.simulation.faults import BY_HAND, KINDS, OUTSIDE_CONTRACT, WITHIN_CONTRACT, Fault
from estimator_testing.simulation.model_dir import model_dir_scenario
from estimator_testing.simulation.process import Process
from estimator_testing.simulation.simulate import DURABLE, Evidence, Outcome, Scenario, simulate
from estimator_testing.simulation.storage import VirtualStorage
from estimator_testing.simulation.world import Call, End

__all__ = [
    "BY_HAND",
    "DURABLE",
    "KINDS",
    "OUTSIDE_CONTRACT",
    "WITHIN_CONTRACT",
    "Call",
    "Change",
    "End",
    "Event",
    "Evidence",
    "Fault",
    "Note",
    "Outcome",
    "Process",
    "Report",
    "Scenario",
    "VirtualStorage",
    "explore",
    "model_dir_scenario",
    "shrink",
    "simulate",
]
