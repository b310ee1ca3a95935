"""Which processes belong together, and which of them this one is."""

from estimator_core.cluster.detect import detect_processes as detect_processes
from estimator_core.cluster.info import ClusterInfo as ClusterInfo
from estimator_core.cluster.info import TaskType as TaskType
from estimator_core.cluster.processes import Processes as Processes
