"""Sessions of nox for readers and installers: the documentation site, and the files of a release."""

import os
import shutil
import sys
from pathlib import Path

import bills
import first_hour  # noqa: F401 - a session of its own
import kit_sessions  # noqa: F401 - a session of its own
import nox
import provenance
import regressions  # noqa: F401 - a session of its own
import reproducing  # noqa: F401 - a session of its own
from uv import find_uv_bin

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # for the modules that build the site
from docs.site import changes  # noqa: E402

# A separate environment, because the development environment does not contain the tools of the site.
RUN = (find_uv_bin(), "run", "--quiet", "--no-default-groups", "--group", "plugins", "--group", "site", "python", "-m")
RELEASE_RUN = (find_uv_bin(), "run", "--quiet", "--only-group", "release", "python")
REPOSITORY = "https://github.com/estimator-core/estimator-core"
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


@nox.session(venv_backend="none", default=False)
def site_versions(session: nox.Session) -> None:
    """Several versions of the site with a selector: `-- NAME=COMMIT...`, the latest first; opened in a browser."""
    if not session.posargs:
        session.error("Say which versions: nox -s site_versions -- 0.2=. 0.1=v0.1.0")
    folder = ROOT / ".nox" / "site-versions"
    shutil.rmtree(folder, ignore_errors=True)
    env = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(ROOT / ".nox" / "site-environment"), "KERAS_BACKEND": "jax"}
    session.run(*RUN, "docs.site.versions", str(folder), *session.posargs, env=env, external=True)
    if any(map(shutil.which, BROWSERS)):
        session.run(*RUN, "docs.site.browse_versions", str(folder / "site"), env=env, external=True)
    session.log(f"the versions are in {folder / 'site'}")


@nox.session(venv_backend="none", default=False)
def release(session: nox.Session) -> None:
    """The files of a release: built twice and compared, checked, with bills of materials and a signed statement."""
    if session.run("git", "status", "--porcelain", external=True, silent=True):
        session.error("The working tree has changes. A release is built from a commit: commit or stash them first.")
    folder = ROOT / ".nox" / "release"
    files = folder / "files"
    shutil.rmtree(folder, ignore_errors=True)
    commit, epoch = str(session.run("git", "log", "-1", "--format=%H %ct", external=True, silent=True)).split()
    environment = {"UV_PROJECT_ENVIRONMENT": str(ROOT / ".nox" / "release-environment")}
    env = {**os.environ, **environment, "SOURCE_DATE_EPOCH": epoch}
    for target in (files, folder / "again"):
        build = (find_uv_bin(), "build", "--quiet", "--all-packages", "--no-create-gitignore", "--out-dir")
        session.run(*build, str(target), env=env, external=True)
    first, second = provenance.digests(files), provenance.digests(folder / "again")
    if first != second:
        session.error(f"Two builds differ: {sorted(name for name in first if first[name] != second.get(name))}")
    session.log(f"{len(first)} files, the same in two builds")
    session.run(*RELEASE_RUN, "-m", "twine", "check", "--strict", *map(str, files.iterdir()), env=env, external=True)
    for name in bills.packages():
        notes = changes.section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), name, "#")
        if not notes:
            session.error(f"CHANGELOG.md has no entry about {name}")
        (files / f"{name}.changes.md").write_text(notes, encoding="utf-8")
        export = (find_uv_bin(), "export", "--quiet", "--preview", "--format", "cyclonedx1.5", "--no-default-groups")
        session.run(*export, "--package", name, "-o", str(files / f"{name}.cdx.json"), env=env, external=True)
    listed = sorted(map(str, files.glob("*.cdx.json")))
    session.run(*RELEASE_RUN, ".ci/bills.py", *listed, env=env, external=True)
    wrong = folder / "wrong.cdx.json"
    wrong.write_text(Path(listed[0]).read_text(encoding="utf-8").replace("https://", "https:// ", 1), encoding="utf-8")
    session.run(*RELEASE_RUN, ".ci/bills.py", str(wrong), env=env, external=True, success_codes=[1])
    key = os.environ.get("RELEASE_KEY") or str(folder / "local-key.pem")
    told = ("--repository", REPOSITORY, "--commit", commit, "--epoch", epoch)
    signing = (*RELEASE_RUN, ".ci/provenance.py")
    session.run(*signing, "make", str(files), "--key", key, *told, env=env, external=True)
    checking = (*signing, "verify", str(files), "--key", str(files / provenance.PUBLIC_KEY))
    session.run(*checking, env=env, external=True)
    altered = Path(listed[0])
    text = altered.read_bytes()
    altered.write_bytes(text + b" ")
    session.run(*checking, env=env, external=True, success_codes=[1])
    altered.write_bytes(text)
    session.log(f"the files are in {files}")
