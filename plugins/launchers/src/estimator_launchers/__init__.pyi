"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_launchers.contract import JobSpec as JobSpec
from estimator_launchers.contract import JobStatus as JobStatus
from estimator_launchers.contract import Launcher as Launcher
from estimator_launchers.contract import Plan as Plan
from estimator_launchers.contract import PlannedFile as PlannedFile
from estimator_launchers.errors import LaunchError as LaunchError
from estimator_launchers.kubernetes import KubernetesLauncher as KubernetesLauncher
from estimator_launchers.launching import find_launcher as find_launcher
from estimator_launchers.launching import follow as follow
from estimator_launchers.launching import launch as launch
from estimator_launchers.local import LocalLauncher as LocalLauncher
from estimator_launchers.ray import RayLauncher as RayLauncher
from estimator_launchers.slurm import SlurmLauncher as SlurmLauncher

__version__: str
