"""The declarations of estimator-launchers for estimator-core. They are imported at start-up, so keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Command, Component, Kind

ESTIMATOR_PLUGIN_API = (1, 1)


def estimator_kinds() -> Sequence[Kind]:
    """Returns the kind of launchers."""
    return [
        Kind(
            name="launcher",
            title="launchers",
            contract="estimator_launchers:Launcher",
            target="a class or function whose call without arguments returns a Launcher",
            suite="estimator_launchers.launcher_suite:LauncherSuite",
            scaffold="estimator_launchers:scaffold",
        )
    ]


def estimator_components() -> Sequence[Component]:
    """Returns one launcher for each engine."""
    return [
        Component(
            kind="launcher",
            name="local",
            target="estimator_launchers:LocalLauncher",
            summary="Child processes of this machine.",
        ),
        Component(
            kind="launcher", name="slurm", target="estimator_launchers:SlurmLauncher", summary="Batch jobs of Slurm."
        ),
        Component(
            kind="launcher",
            name="kubernetes",
            target="estimator_launchers:KubernetesLauncher",
            summary="JobSets of Kubernetes, with an evaluator and TensorBoard.",
        ),
        Component(kind="launcher", name="ray", target="estimator_launchers:RayLauncher", summary="Jobs of Ray Train."),
    ]


def estimator_commands() -> Sequence[Command]:
    """Returns the commands `estimator launch` and `estimator cluster`."""
    return [
        Command(
            name="launch",
            target="estimator_launchers.cli.launch",
            summary="Run a command as several processes that train together.",
        ),
        Command(
            name="cluster",
            target="estimator_launchers.cli.cluster",
            summary="Show the place of this process in its job, and how it was detected.",
        ),
    ]
