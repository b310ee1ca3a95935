"""A session of nox: compares this tree with another commit, both installed side by side."""

import shutil
from pathlib import Path

import nox
from uv import find_uv_bin

ROOT = Path(__file__).resolve().parent.parent
#: The workloads of `benchmarks/two_trees.py` with a clear result after a minute or two.
CUT = ("mlp_steps", "mlp_steps, 20 a dispatch", "hooks_cost", "evaluation")
#: The part of the other commit's speed that a workload must keep, unless its interval contains that part.
KEPT = "0.95"


@nox.session(venv_backend="none", default=False)
def regressions(session: nox.Session) -> None:
    """Fails where a workload lost 5% since the last tag, or since COMMIT: `-- [COMMIT] [options of two_trees.py]`."""
    given = list(session.posargs)
    commit = given.pop(0) if given and not given[0].startswith("-") else last_tag(session)
    tree = Path(session.create_tmp()).resolve() / "before"
    shutil.rmtree(tree, ignore_errors=True)  # left by a killed session
    git = ("git", "-C", str(ROOT), "worktree")
    session.run(*git, "add", "--force", "--detach", str(tree), commit, external=True)
    try:
        session.run(find_uv_bin(), "sync", "--quiet", "--directory", str(tree), env={"VIRTUAL_ENV": ""}, external=True)
        before = (str(tree / ".venv" / "bin" / "python"), str(tree / "benchmarks"))
        script = str(ROOT / "benchmarks" / "two_trees.py")
        asked = given if "--only" in given else ["--only", *CUT, *given]
        run = (find_uv_bin(), "run", "--quiet", "python", script, "--before", *before, "--fail-below", KEPT)
        session.run(*run, *asked, external=True)
    finally:
        session.run(*git, "remove", "--force", str(tree), external=True)


def last_tag(session: nox.Session) -> str:
    """Returns the newest tag before this commit."""
    command = ("git", "-C", str(ROOT), "describe", "--tags", "--abbrev=0")
    found = session.run(*command, external=True, silent=True, success_codes=[0, 128])
    if not isinstance(found, str) or found.startswith("fatal"):
        session.error("There is no tag to compare with. Name a commit: nox -s regressions -- COMMIT")
    return found.strip()
