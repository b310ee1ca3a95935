"""Which processes belong together, and which of them this one is."""

from estimator_core._cluster.detect import detect_processes as detect_processes
from estimator_core._cluster.info import ClusterInfo as ClusterInfo
from estimator_core._cluster.info import TaskType as TaskType
from estimator_core._cluster.processes import Processes as Processes
