"""Detects the processes that train together, and the place of this process among them."""

from estimator_core._cluster.detect import detect_processes as detect_processes
from estimator_core._cluster.info import ClusterInfo as ClusterInfo
from estimator_core._cluster.info import TaskType as TaskType
from estimator_core._cluster.processes import Processes as Processes
