"""Checks the links of a built site: those within it lead to a page and a place on it; others are listed."""

from __future__ import annotations

import argparse
import posixpath
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a reader's browser loads without a click.
_LOADED = {"link": "href", "script": "src", "img": "src", "iframe": "src"}
# Of `link`, the kinds that only name an address.
_NAMED = frozenset({"canonical", "next", "prev", "alternate", "edit"})


@dataclass(kw_only=True)
class Page:
    """What one page says.

    Attributes:
        ids: places on it.
        links: addresses that it leads to.
        loads: addresses that a browser loads with it.
    """

    ids: set[str] = field(default_factory=set[str])
    links: set[str] = field(default_factory=set[str])
    loads: set[str] = field(default_factory=set[str])


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.page.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.page.links.add(given["href"])
        if tag in _LOADED and _LOADED[tag] in given and given.get("rel") not in _NAMED:
            self.page.loads.add(given[_LOADED[tag]])


def read(text: str) -> Page:
    """One page of HTML."""
    reader = _Reader()
    reader.feed(text)
    return reader.page


def faults(site: Mapping[str, Page], files: frozenset[str]) -> list[str]:
    """Links that lead nowhere, and what would be loaded from elsewhere.

    Args:
        site: the pages, by their path from the top of the site.
        files: the paths of all files.
    """
    found: list[str] = []
    for where, page in site.items():
        found += [f"{where} loads {address}" for address in page.loads if _is_outside(address)]
        for address in page.links | page.loads:
            if not _is_outside(address) and (problem := _problem(where, address, site, files)):
                found.append(f"{where}: {address} {problem}")
    return sorted(found)


def _is_outside(address: str) -> bool:
    return bool(urlsplit(address).scheme or urlsplit(address).netloc)


def _problem(where: str, address: str, site: Mapping[str, Page], files: frozenset[str]) -> str:
    parts = urlsplit(address)
    folder = "" if parts.path.startswith("/") else posixpath.dirname(where)
    path = posixpath.normpath(posixpath.join(folder, unquote(parts.path).lstrip("/"))) if parts.path else where
    target = next((one for one in (path, posixpath.normpath(f"{path}/index.html")) if one in files), None)
    if target is None:
        return "leads nowhere"
    if parts.fragment and target in site and unquote(parts.fragment) not in site[target].ids | {"__top"}:
        return "names no place on the page"
    return ""


def main() -> int:
    """Checks a folder; the list of addresses outside goes to a file beside it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path, help="the built site")
    folder = parser.parse_args().site
    files = frozenset(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    site = {name: read((folder / name).read_text(encoding="utf-8")) for name in files if name.endswith(".html")}
    outside = sorted({address for page in site.values() for address in page.links if _is_outside(address)})
    (folder.parent / "outside.txt").write_text("\n".join(outside) + "\n", encoding="utf-8")
    found = faults({name: page for name, page in site.items() if name != "404.html"}, files)
    print(*found, f"{len(site)} pages, {len(outside)} addresses outside, {len(found)} faults", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
