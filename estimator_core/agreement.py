"""Decisions of a call, and messages between its processes, for a package that lets several processes train together."""

from estimator_core._cluster.processes import SaidByEach, chief_says, gather
from estimator_core._loop.agreement import Decisions

__all__ = [
    "Decisions",
    "SaidByEach",
    "chief_says",
    "gather",
]
