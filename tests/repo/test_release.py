"""Tests of the parts of a release: addresses, links that work on an index, and builds that repeat bit for bit."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from docs.site.api import RAW, REPOSITORY, TREE

ROOT = Path(__file__).parents[2]
URLS = {"Homepage", "Documentation", "Changelog", "Issues"}
LINK = re.compile(r"\]\(([^)\s]+)\)")


def wrong_links(text: str) -> list[str]:
    """Returns links that do not work on an index, or whose file the repository lacks."""
    targets = [target.partition("#")[0] for target in LINK.findall(text) if not target.startswith("#")]
    relative = [target for target in targets if "://" not in target]
    inside = [target.removeprefix(TREE).removeprefix(RAW) for target in targets if target.startswith((TREE, RAW))]
    return relative + [target for target in inside if not (ROOT / target).exists()]


def test_every_package_names_its_addresses(root_project: dict[str, Any]) -> None:
    projects = [root_project, *(tomllib.loads(path.read_text()) for path in ROOT.glob("plugins/*/pyproject.toml"))]
    for project in projects:
        urls = project["project"]["urls"]
        assert set(urls) == URLS
        assert [url for url in urls.values() if not url.startswith(REPOSITORY)] == []


def test_every_package_has_its_line_in_the_changelog(root_project: dict[str, Any]) -> None:
    changes = (ROOT / "CHANGELOG.md").read_text().partition("\n## 0.1.0")[2]
    names = [tomllib.loads(path.read_text())["project"]["name"] for path in ROOT.glob("plugins/*/pyproject.toml")]
    assert [name for name in [root_project["project"]["name"], *names] if f"**{name}**" not in changes] == []


def test_readmes_of_plugins_have_links_that_work_anywhere(plugin_folder: Path) -> None:
    assert wrong_links((plugin_folder / "README.md").read_text()) == []


@pytest.mark.parametrize("link", ["](docs/tutorial.md)", f"]({TREE}docs/gone.md)"])
def test_a_wrong_link_is_found(link: str) -> None:
    assert wrong_links(f"[page{link}") != []


def built(folder: Path, package: Path) -> dict[str, str]:
    """Builds the wheel and the sdist of a package into a folder, and returns their digests."""
    uv = shutil.which("uv") or "uv"
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1763769600"}
    command = [uv, "build", "--quiet", "--no-create-gitignore", "--out-dir", str(folder), str(package)]
    subprocess.run(command, check=True, env=env)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_build_repeats_bit_for_bit_and_its_readme_works_on_an_index(tmp_path: Path) -> None:
    first, second = built(tmp_path / "one", ROOT), built(tmp_path / "two", ROOT)
    assert first == second
    assert len(first) == 2
    (wheel,) = (tmp_path / "one").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    assert f"Project-URL: Homepage, {REPOSITORY}" in text
    assert wrong_links(text) == []
    assert f"]({TREE}docs/tutorial.md)" in text
