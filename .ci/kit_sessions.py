"""Sessions about third-party plugins: faults in sound components, an organisation, an author, an empty environment."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nox
from export_sessions import House
from uv import find_uv_bin

CI = Path(__file__).parent
#: Kinds of the core whose templates the ordinary run builds. `nox -s template` also builds the other kinds.
KINDS_IN_CUT = ["head", "hook"]
OTHER_KINDS = ["exporter", "input", "storage", "format", "backend", "model", "adapter", "transform"]
OTHER_KINDS += ["initial_values", "export_check", "checkpoint_policy", "coordinator"]
#: Kinds that a plugin defines, and the packages that are installed with a component of such a kind.
DEFINED = {
    "command": ("estimator_terminal",),
    "schema": ("estimator_inputs",),
    "launcher": ("estimator_launchers",),
    "report_section": ("estimator_report",),
    "program_format": ("estimator_experiment",),
}
COMMAND = (find_uv_bin(), "run", "--quiet", "python", "-m", "tests.mutants.suites.run")


@nox.session(venv_backend="none", default=False)
def suite_mutants(session: nox.Session) -> None:
    """Fails if a suite finds fewer than nine of ten faults: `-- --only KIND_OR_NAME`, `-- --list`, `-- --write`."""
    session.run(*COMMAND, *session.posargs, external=True)


def define_kit_sessions(house: House, kinds: Sequence[str]) -> None:
    """Adds the sessions that need wheels.

    Args:
        house: the parts of the noxfile that they use.
        kinds: the kinds of components that `estimator new-plugin` writes.
    """

    @nox.session(python=house.python, default=False)
    def monorepo(session: nox.Session) -> None:
        """An organisation that has only wheels: policy, override, block, lock, a package that changed."""
        packages = ("estimator_core", "estimator_heads", "estimator_policy")
        session.install("--no-sources", *map(house.wheel, packages))
        with tempfile.TemporaryDirectory() as folder, session.chdir(folder):
            shutil.copy2(CI.parent / "tests" / "wheels" / "organisation.py", folder)
            installer = (find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--reinstall")
            session.run("python", "organisation.py", *installer, env={"JAX_PLATFORMS": "cpu", "PYTHONPATH": None})

    @nox.session(python=house.python, default=False)
    def author(session: nox.Session) -> None:
        """From an empty directory to a passing plugin of each kind, by the tutorial: `-- --only KIND`, `-- --write`."""
        wheels = {name: house.wheel(name) for name in ("estimator_core", "estimator_testing")}
        wheels |= {name: house.wheel(name) for names in DEFINED.values() for name in names}
        given = [f"--wheel={name}={path}" for name, path in wheels.items()]
        given += [f"--kind={kind}:{','.join(DEFINED.get(kind, ()))}" for kind in kinds]
        session.run("python", str(CI / "author.py"), f"--uv={find_uv_bin()}", *given, *session.posargs)

    # The session uses pip, as users do, and the index of pip's configuration.
    @nox.session(python=house.python, default=False, venv_backend="venv")
    def footprint(session: nox.Session) -> None:
        """What `pip install estimator-core` adds, beside pluggy, Keras and Lightning: `-- --write`."""
        session.run("python", str(CI / "footprint.py"), house.wheel("estimator_core"), *session.posargs)

    _ = monorepo, author, footprint
