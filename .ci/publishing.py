"""Sessions of nox about what readers and installers get: the documentation site, and what a release consists of."""

import os
import shutil
from pathlib import Path

import kit_sessions  # noqa: F401 - a session of its own
import nox
import regressions  # noqa: F401 - a session of its own
import reproducing  # noqa: F401 - a session of its own
from uv import find_uv_bin

ROOT = Path(__file__).resolve().parent.parent
# An environment of its own: the tools of the site are no part of the development environment.
RUN = (find_uv_bin(), "run", "--quiet", "--no-default-groups", "--group", "plugins", "--group", "site", "python", "-m")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@nox.session(venv_backend="none", default=False)
def site(session: nox.Session) -> None:
    """The documentation site: built with warnings as errors, every link followed, opened in a browser."""
    folder = ROOT / ".nox" / "site"
    env = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(ROOT / ".nox" / "site-environment"), "KERAS_BACKEND": "jax"}
    session.run(*RUN, "docs.site.build", str(folder), env=env, external=True)
    session.run(*RUN, "docs.site.links", str(folder / "site"), env=env, external=True)
    if not any(map(shutil.which, BROWSERS)):
        session.skip("the site is built and its links lead somewhere; no browser is installed to open it")
    session.run(*RUN, "docs.site.browse", str(folder / "site"), env=env, external=True)
    session.log(f"the site is in {folder / 'site'}, pictures of it in {folder / 'pictures'}")
