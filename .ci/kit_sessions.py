"""The session `suite_mutants`: faults in sound components of every kind, and which suite of the kit notices them."""

import nox
from uv import find_uv_bin

COMMAND = (find_uv_bin(), "run", "--quiet", "python", "-m", "tests.mutants.suites.run")


@nox.session(venv_backend="none", default=False)
def suite_mutants(session: nox.Session) -> None:
    """Fails where a suite notices less than nine of ten faults: `-- --only KIND_OR_NAME`, `-- --list`, `-- --write`."""
    session.run(*COMMAND, *session.posargs, external=True)
