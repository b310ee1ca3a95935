"""Sessions that need large third-party software: engines, MLflow, trackers, telemetry, images. They run by name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import nox

TESTS = "plugins/exporters/tests"
TRACKERS = "plugins/hooks/tests/trackers"
#: The extras of estimator-hooks, and the files that test their trackers.
TRACKER_TESTS = {
    "comet": "test_comet_and_neptune.py",
    "mlflow": "test_mlflow.py",
    "neptune": "test_comet_and_neptune.py",
    "wandb": "test_wandb.py",
}


class House(NamedTuple):
    """The parts of the noxfile that the sessions use."""

    python: str
    wheel: Callable[..., str]
    outside: Callable[..., AbstractContextManager[dict[str, str | None]]]
    pytest: Callable[..., None]


def define_export_sessions(house: House) -> None:
    """Adds the sessions."""

    def checked(
        session: nox.Session, checks: str, *extras: str, packages: tuple[str, ...] = (), more: tuple[str, ...] = ()
    ) -> None:
        """Runs one file of checks with wheels of the core, the exporters with extras, and the kit."""
        names = ("estimator_core", "estimator_inputs", "estimator_signatures", "estimator_testing")
        wheels = [house.wheel(name) for name in names]
        session.install("--no-sources", *wheels, house.wheel("estimator_exporters", *extras), *packages)
        session.install("--group", "test")
        with house.outside(session, TESTS, *more) as env:
            # Ray would start its workers with the `uv run` that has started nox.
            own = {"PIP_FIND_LINKS": str(Path(wheels[0]).parent), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
            house.pytest(session, checks, env={**env, **own})

    @nox.session(python=house.python, default=False)
    def scoring_engines(session: nox.Session) -> None:
        """`estimator predict --on ray|beam` equals the local command row for row, with killed workers too."""
        storage = house.wheel("estimator_storage")  # the pieces of a job are files at URLs
        checked(session, f"{TESTS}/engines/check_engines.py", "predict", "ray", "beam", packages=(storage,))

    @nox.session(python=house.python, default=False)
    def mlflow_flavor(session: nox.Session) -> None:
        """MLflow itself logs, loads and serves exports."""
        checked(session, f"{TESTS}/mlflow/check_mlflow.py", "mlflow")

    @nox.session(python=house.python, default=False)
    @nox.parametrize("extra", list(TRACKER_TESTS))
    def trackers(session: nox.Session, extra: str) -> None:
        """A tracker of estimator-hooks with its real library: offline, or with a store in a folder."""
        wheels = [house.wheel(name) for name in ("estimator_core", "estimator_signatures", "estimator_testing")]
        session.install("--no-sources", *wheels, house.wheel("estimator_hooks", extra))
        session.install("--group", "test")
        with house.outside(session, "plugins/hooks/tests") as env:
            house.pytest(session, f"{TRACKERS}/{TRACKER_TESTS[extra]}", env=env)

    @nox.session(python=house.python, default=False)
    def telemetry(session: nox.Session) -> None:
        """Traces and JSON logs of training and of the server, by OpenTelemetry's own collector."""
        hooks, tests = house.wheel("estimator_hooks", "telemetry"), "plugins/hooks/tests/telemetry"
        checked(session, f"{tests}/check_telemetry.py", "telemetry", packages=(hooks,), more=(tests,))

    @nox.session(python=house.python, default=False)
    def serving_image(session: nox.Session) -> None:
        """The RUN and CMD lines of the Dockerfile of examples/serving in an empty environment; its manifests."""
        schemas = ("kubernetes-validate>=1.30", "pyyaml>=6")
        checked(session, f"{TESTS}/image/check_image.py", packages=schemas, more=("examples/serving",))

    @nox.session(python=house.python, default=False)
    def server_attacks(session: nox.Session) -> None:
        """100,000 mixed requests under attacks, or `-- REQUESTS`; 500 reloads; on an idle machine."""
        names = ("estimator_core", "estimator_signatures", "estimator_testing", "estimator_exporters")
        wheels = [house.wheel(name) for name in names]
        session.install("--no-sources", *wheels)
        session.install("--group", "test")
        with house.outside(session, TESTS) as env:
            session.run("python", "-m", "plugins.exporters.tests.attacks.mixed", *session.posargs, env=env)
            reloads = f"{TESTS}/test_reloads.py"
            session.run("pytest", "-q", "-s", "-p", "no:cacheprovider", "-m=slow", reloads, env=env)

    # The session uses pip, which is one of the two resolvers.
    @nox.session(python=house.python, default=False, venv_backend="venv")
    def onnx_resolution(session: nox.Session) -> None:
        """The extra onnx beside orbax-checkpoint 0.12 and newer: a jax2onnx of this year, by pip and by uv."""
        wheels = str(Path(house.wheel("estimator_core")).parent)
        session.install("pip>=24", "uv")
        with house.outside(session, f"{TESTS}/separate"):
            session.run("python", f"{TESTS}/separate/check_resolution.py", wheels)

    _ = scoring_engines, mlflow_flavor, trackers, telemetry, serving_image, onnx_resolution, server_attacks
