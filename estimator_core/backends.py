"""The contract of device backends and its records, and figures of devices."""

from estimator_core._backends import Available, Backend, Unavailable
from estimator_core._backends.contract import BATCH_AXES, STAGES
from estimator_core._backends.topology import DeviceFigures, Topology, TopologyBackend

__all__ = [
    "BATCH_AXES",
    "STAGES",
    "Available",
    "Backend",
    "DeviceFigures",
    "Topology",
    "TopologyBackend",
    "Unavailable",
]
