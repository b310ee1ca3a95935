"""Builds several versions of the site beside each other: `python -m docs.site.versions FOLDER NAME=COMMIT...`.

The first one is the latest. The selector of the theme reads `versions.json`, in the form that mike writes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_STAGE = "import pathlib, sys; from docs.site.stage import stage; stage(pathlib.Path(sys.argv[1]))"
_OF_THE_SITE = ("--no-default-groups", "--group", "plugins", "--group", "site")
_TO_LATEST = """<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,">
<title>estimator-core</title><meta http-equiv="refresh" content="0; url={name}/"><a href="{name}/">{name}</a></html>
"""


def build(folder: Path, name: str, tree: Path, run: Sequence[str]) -> None:
    """Builds the site of one version into `folder/site/NAME`.

    Args:
        folder: what is made for all versions.
        name: of the version, part of its address.
        tree: the sources of the version.
        run: words before `python` that make the packages of the version importable.

    Raises:
        CalledProcessError: the pages cannot be collected, or the build warns.
    """
    staged = folder / "staged" / name
    subprocess.run([*run, "python", "-c", _STAGE, str(staged)], cwd=tree, check=True)
    file = staged / "mkdocs.yml"
    settings = json.loads(file.read_text(encoding="utf-8"))
    settings["extra"] = {"version": {"provider": "mike", "default": "latest"}}
    file.write_text(json.dumps(settings, indent=1), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", "mkdocs.yml"]
    subprocess.run(command, cwd=staged, check=True)
    (folder / "site").mkdir(exist_ok=True)
    shutil.move(staged / settings["site_dir"], folder / "site" / name)


def write_list(site: Path, names: Sequence[str]) -> None:
    """Writes the list that the selector reads, and a page that leads to the latest version.

    Args:
        site: the folder that holds a folder for each version.
        names: of the versions, the latest first.
    """
    rows = [{"version": name, "title": name, "aliases": ["latest"] if name == names[0] else []} for name in names]
    (site / "versions.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(_TO_LATEST.format(name=names[0]), encoding="utf-8")


def main() -> int:
    """Builds the versions; a commit of "." is the working tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the site is in its folder `site`")
    parser.add_argument("versions", nargs="+", metavar="NAME=COMMIT", help="the latest first")
    given = parser.parse_args()
    folder = given.folder.resolve()
    versions = [one.partition("=")[::2] for one in given.versions]
    for one, parts in zip(given.versions, versions, strict=True):
        if not all(parts):
            parser.error(f"{one!r} is no NAME=COMMIT, such as 0.1=v0.1.0, or dev=. for the working tree")
    for name, commit in versions:
        if commit == ".":
            build(folder, name, ROOT, ("uv", "run", "--quiet", *_OF_THE_SITE))
            continue
        with tempfile.TemporaryDirectory() as tree:
            archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True)
            subprocess.run(["tar", "x", "-C", tree], input=archive.stdout, check=True)
            own = ("env", f"UV_PROJECT_ENVIRONMENT={tree}/.venv", "uv", "run", "--quiet", *_OF_THE_SITE)
            build(folder, name, Path(tree), own)
    write_list(folder / "site", [name for name, _ in versions])
    return 0


if __name__ == "__main__":
    sys.exit(main())
