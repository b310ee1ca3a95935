"""Where pages and headings of the repository are on the site."""

from __future__ import annotations

import re
from collections.abc import Iterator

from docs.site.names import ROOT

# The page on the site of a page of the repository that is not below docs/.
_MOVED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
_HEADING = re.compile(r"^```.*?^```$|^#+ (?P<words>[^\n]+)$", re.DOTALL | re.MULTILINE)


def sources() -> list[str]:
    """Pages of the repository that are on the site as they are."""
    return [*_MOVED, *(path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("docs/**/*.md")))]


def place_of(name: str) -> str:
    """The path on the site of a page of the repository."""
    if name.startswith("plugins/"):
        return f"packages/{name.split('/')[1]}.md"
    return _MOVED.get(name) or name.removeprefix("docs/")


def headings(text: str) -> Iterator[tuple[int, str, str]]:
    """The headings of a page in order: where each begins, its words, and its name in the links of the site.

    Args:
        text: the page.

    """
    seen: set[str] = set()
    for found in _HEADING.finditer(text):
        if found["words"]:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found["words"]).strip()
            yield found.start(), words, _unused(_slug(words), seen)


def _slug(words: str) -> str:
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", words).strip().lower())


def _unused(name: str, seen: set[str]) -> str:
    number, free = 0, name
    while free in seen:
        number += 1
        free = f"{name}_{number}"
    seen.add(free)
    return free
