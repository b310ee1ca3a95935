"""Collects the pages of the site in a folder: those of docs/, the README, and the generated ones.

Links between files of the repository become links between pages. A link to a file that is not a page leads to the
repository.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
from pathlib import Path

from docs.site import api, gallery, packages
from docs.site.names import ROOT
from docs.site.places import place_of, sources

_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)]*)?\))")


def stage(folder: Path) -> None:
    """Writes the sources of the site into an empty folder, `docs` below it, and its configuration beside them."""
    shutil.rmtree(folder, ignore_errors=True)
    target = folder / "docs"
    for path, text in texts().items():
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "images", target / "images", dirs_exist_ok=True)
    shutil.copytree(ROOT / "docs" / "site" / "assets", target / "assets", dirs_exist_ok=True)
    gallery.make((ROOT / gallery.PAGE).read_text(encoding="utf-8"), target / "gallery")
    for source in [ROOT / "estimator_core", *(path for path in ROOT.glob("plugins/*/src/*/"))]:
        _copied(source, folder / "src" / source.name)
    (folder / "mkdocs.yml").write_text(json.dumps(configuration(), indent=1), encoding="utf-8")


def _copied(package: Path, target: Path) -> None:
    """A package for the reader of docstrings, which passes over folders without `__init__.py`."""
    shutil.copytree(package, target, ignore=shutil.ignore_patterns("__pycache__", "*.tmpl"))
    for inside in [target, *(path for path in target.rglob("*") if path.is_dir())]:
        if not (inside / "__init__.py").exists():
            (inside / "__init__.py").write_text("", encoding="utf-8")


def texts() -> dict[str, str]:
    """Every page by its path on the site, links adapted."""
    found = {place_of(name): _relinked(name, (ROOT / name).read_text(encoding="utf-8")) for name in sources()}
    found["gallery.md"] = gallery.shown(found["gallery.md"])
    for name, text in packages.pages().items():
        found[f"packages/{name}.md"] = _relinked(f"plugins/{name}/README.md", text)
    return found | {f"api/{name}": text for name, text in api.pages().items()}


def _relinked(name: str, text: str) -> str:
    """The text of a page with its links as they must be on the site."""
    place, known = place_of(name), {*sources()}

    def changed(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        if target.startswith((api.TREE, api.RAW)):  # the READMEs of packages are also read on an index
            target = target.removeprefix(api.TREE).removeprefix(api.RAW)
            target = posixpath.relpath(target, posixpath.dirname(name) or ".")
        if "://" in target or target.startswith(("mailto:", "../api/")):
            return match.group()
        file = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        if (ROOT / file).is_dir() and (ROOT / file / "README.md").is_file():
            file += "/README.md"
        if file.startswith("docs/images/"):
            return before + os.path.relpath(file.removeprefix("docs/"), posixpath.dirname(place) or ".") + after
        if file in known or re.fullmatch(r"plugins/\w+/README\.md", file):
            return before + os.path.relpath(place_of(file), posixpath.dirname(place) or ".") + after
        return before + api.TREE + file + after

    return _LINK.sub(changed, text)


def configuration() -> dict[str, object]:
    """What the generator reads: the written part, and the pages that are generated."""
    written = json.loads((ROOT / "docs" / "site" / "site.json").read_text(encoding="utf-8"))
    core = [f"api/{name}" for name in api.pages() if name.startswith("estimator_core")]
    plugins = [f"api/{name}" for name in api.pages() if not name.startswith("estimator_core")]
    listed = [f"packages/{name}.md" for name in packages.pages()]
    pages = [place_of(name) for name in sources()]
    named = set(re.findall(r'"([\w./-]+\.md)"', json.dumps(written["nav"])))
    others = [page for page in pages if page not in named and not page.startswith("decisions/")]
    for part in written["nav"]:
        if "How-to guides" in part and others:
            part["How-to guides"].append({"More": others})
        if "Concepts" in part:
            part["Concepts"].append({"Decisions": [page for page in pages if page.startswith("decisions/")]})
        if "Reference" in part:
            part["Reference"] += [{"Core": core}, {"Plugins": plugins}, {"Packages": listed}]
    python = written["plugins"][1]["mkdocstrings"]["handlers"]["python"]
    python["paths"] = ["src"]
    python["options"]["extensions"] = [str(ROOT / "docs" / "site" / "examples.py")]
    return written
