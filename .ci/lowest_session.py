"""The packages with their lowest supported versions: together by default, each alone by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import nox
from export_sessions import House

ROOT = Path(__file__).parents[1]
OF_NO_VERSION = ("are_caught", "another_hash_seed", "metrics_merge", "metrics_keep_their_structure")
OF_NO_VERSION += ("its_file_does_not_import", "lists_see_what_has_just_happened")
# Heads that compute with the operations of other heads.
ALIKE = ("TestRankingHead", "TestListwiseRankingHead", "TestRetrievalHead", "TestTokenClassificationHead")
ALIKE += ("TestMultiLabelHead", "TestMultiHotLabels", "TestSequentialHeadWrapper", "TestMultiClassHead")
# Tests that wait for processes that do not answer. The test that names a killed process still runs.
WAITING = ("frozen_process_is_named", "late_process_is_named", "who_has_ended", "who_ends_is_lost", "may_end_first")


def lowest_tests(*plugins: str) -> list[str]:
    """Returns the tests that lower versions could break: declarations of plugins, and contracts of components.

    Tests that the suites refuse broken components depend on no version, and take most of the time. The same holds for
    the order of hashes, the merging of metrics, the imports of a file, and the listings of a store. The tests of each
    package cover these with the newest versions.
    """
    patterns = ("test_plugin*.py", "*suite*.py")
    folders = [ROOT / "plugins" / plugin / "tests" for plugin in plugins]
    found = {path.relative_to(ROOT) for folder in folders for pattern in patterns for path in folder.glob(pattern)}
    return [f"-k=not ({' or '.join((*OF_NO_VERSION, *ALIKE, *WAITING))})", *map(str, sorted(found))]


def define_lowest_session(
    house: House,
    install: Callable[..., None],
    plugins: Sequence[str],
    options: Sequence[str],
    shared: Sequence[str],
) -> None:
    """Adds the session.

    Args:
        house: the parts of the noxfile that it uses.
        install: the function that installs wheels at a resolution.
        plugins: the names of the folders under plugins/.
        options: the options of pytest.
        shared: the files of the core's tests that the tests of plugins use.
    """

    @nox.session(python=house.python)
    def lowest(session: nox.Session) -> None:
        """All plugins together with the lowest versions; `plugin-<x>(resolution='lowest-direct')` runs one."""
        packages = ("estimator_core", *(f"estimator_{plugin}" for plugin in plugins))
        projects = [f"plugins/{plugin}/pyproject.toml" for plugin in plugins]
        groups = {path: nox.project.load_toml(ROOT / path).get("dependency-groups", {}) for path in projects}
        tools = [f"{path}:test" for path in projects if "test" in groups[path]]
        install(session, *packages, resolution="lowest-direct", groups=("test", *tools))
        with house.outside(session, *(f"plugins/{plugin}/tests" for plugin in plugins), *shared) as env:
            own = [plugin for plugin in plugins if plugin != "testing"]  # the kit has only the components that it tests
            house.pytest(session, *options, *lowest_tests(*own), env=env)

    _ = lowest
