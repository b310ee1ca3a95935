"""Sessions of launchers: Slurm, Ray and the manifests of Kubernetes; `-- -m ""` adds the slow faults."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import nox
from export_sessions import House

TESTS = "plugins/launchers/tests"
CHECK_INSTALLED = str(Path(__file__).parent / "check_installed.py")
# The packages that a run of several processes needs in addition to the core.
LAUNCHED = ("estimator_cluster", "estimator_launchers")

# Tests that wait for Slurm most of the time. Each process has a Slurm of its own.
WAITING = ("-n", "4", "--dist=worksteal")


def define_launcher_sessions(house: House) -> None:
    """Adds the sessions."""

    def tested(
        session: nox.Session,
        tests: str,
        *packages: str,
        extra: str = "",
        env: dict[str, str] | None = None,
        options: tuple[str, ...] = (),
    ) -> None:
        """Tests one launcher, with the packages that only its tests need, and with options of pytest."""
        launched = [house.wheel(name, *([extra] if extra and name == LAUNCHED[-1] else [])) for name in LAUNCHED]
        session.install("--no-sources", house.wheel("estimator_core"), *launched, house.wheel("estimator_testing"))
        session.install("--group", "test", "--group", "plugins/launchers/pyproject.toml:test", *packages)
        with house.outside(session, TESTS, "docs/launch") as outer:
            installed = ("estimator_core", *LAUNCHED, "--tools", "estimator_testing")
            session.run("python", CHECK_INSTALLED, *installed, env=outer)
            if session.posargs:  # slow tests run a sweep with the launcher
                sweep = house.wheel("estimator_runs").partition("[")[0] + "[sweep]"
                session.install("--no-sources", house.wheel("estimator_experiment"), sweep)
            found = [str(path) for path in Path(TESTS).glob(tests)]
            house.pytest(session, "-m=not slow", *options, *found, env={**outer, **(env or {})})

    @nox.session(python=house.python)
    def slurm(session: nox.Session) -> None:
        """A Slurm of two virtual nodes, from Debian's packages and as root; `-- -m ""` adds faults."""
        if shutil.which("sbatch") is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
            quiet = ["-qq", "-o=Dpkg::Use-Pty=0", "-o=Acquire::Retries=0", "-o=Acquire::http::Timeout=20"]
            packages = ["--no-install-recommends", "--yes", "slurm-wlm", "munge"]
            update = subprocess.run(["apt-get", "update", *quiet])
            if update.returncode or subprocess.run(["apt-get", "install", *quiet, *packages]).returncode:
                session.warn("apt brings no Slurm here")
        tested(session, "test_slurm*.py", env={"ESTIMATOR_TEST_SLURM": "1"}, options=WAITING)

    @nox.session(python=house.python)
    def kubernetes(session: nox.Session) -> None:
        """The manifests against the schemas of three versions of Kubernetes and of JobSet; their pods as processes."""
        tested(session, "test_kubernetes*.py", "kubernetes-validate>=1.30", "kubeflow-trainer-api>=2.0")

    @nox.session(python=house.python)
    def ray(session: nox.Session) -> None:
        """A Ray of two node processes: a job of Ray Train loses an actor; `-- -m ""`: all of it, docs/launch/ray.md."""
        tested(session, "test_ray*.py", extra="ray", env={"ESTIMATOR_TEST_RAY": "1"})

    _ = slurm, kubernetes, ray
