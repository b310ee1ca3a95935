"""The session `first_hour`: follows the pages for new users to the letter."""

import shutil
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent.parent


@nox.session(venv_backend="none", default=False)
def first_hour(session: nox.Session) -> None:
    """A new user's first hour from new environments: CSV, model_fn, plugin, two processes; `-- --only WORD`."""
    if shutil.which("curl") is None:
        session.skip("curl asks the server of docs/first_hour.md; it is not installed")
    folder = ROOT / ".nox" / "first-hour"
    shutil.rmtree(folder, ignore_errors=True)
    session.run("python3.11", "-m", "docs.site.walks", str(folder), *session.posargs, external=True)
