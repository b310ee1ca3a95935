"""Tests of an organisation's monorepo of wheels in a folder of this environment. The session `monorepo` uses an empty
environment.
"""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from tests.plugins.fake_site import Site
from tests.wheels.organisation import story

pytestmark = pytest.mark.plugins


def install(site: Site, path: Path) -> None:
    """Installs a pure Python wheel: it writes the files to a folder on the path of the interpreter."""
    package = path.name.partition("-")[0]
    for old in (site.path / package, *site.path.glob(f"{package}-*.dist-info")):
        shutil.rmtree(old, ignore_errors=True)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(site.path)


@pytest.mark.slow
def test_a_monorepo_overrides_blocks_and_locks_and_a_changed_package_is_refused_by_name(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, wheels = tmp_path / "monorepo", tmp_path / "wheels"
    project.mkdir()
    wheels.mkdir()
    monkeypatch.chdir(project)
    chapters = list(story(project, wheels, lambda path: install(site, path), site.python))
    assert chapters[-1] == "locked anew, it goes on and names what changed"
    assert len(chapters) == 5
