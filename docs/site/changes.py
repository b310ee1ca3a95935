"""The changes of one package, taken from CHANGELOG.md."""

from __future__ import annotations

import re

from docs.site.api import TREE

_VERSION = re.compile(r"^## (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^(?P<depth>###|####|-) (?P<text>.+(?:\n  .+)*)", re.MULTILINE)
_RELATIVE = re.compile(r"(?<=\]\()(?!#|[\w+.-]+:)([^)]+)(?=\))")


def changes(changelog: str, distribution: str) -> dict[str, dict[str, list[str]]]:
    r"""The entries about a package by version and section, newest first; versions without any are left out.

    An entry is about the packages whose names are bold before its colon. Without one, it is about those that its first
    sentence or its heading names.

    Example:
        >>> log = "## 1.0\n### Fixed\n#### Inputs (estimator-b)\n- One.\n- **estimator-a**: two.\n"
        >>> changes(log, "estimator-b"), changes(log, "estimator-a")
        ({'1.0': {'Fixed': ['One.']}}, {'1.0': {'Fixed': ['**estimator-a**: two.']}})
    """
    found: dict[str, dict[str, list[str]]] = {}
    named = re.compile(rf"(?<![\w-]){re.escape(distribution)}(?![\w-])")
    _, *parts = _VERSION.split(changelog)
    for version, text in zip(parts[::2], parts[1::2], strict=True):
        section = heading = ""
        for match in _ENTRY.finditer(text):
            words = " ".join(match["text"].split())
            if match["depth"] == "###":
                section, heading = words, ""
            elif match["depth"] == "####":
                heading = words
            elif named.search(_subject(words, heading)):
                found.setdefault(version, {}).setdefault(section, []).append(words)
    return found


def section(changelog: str, distribution: str, heading: str = "##") -> str:
    """The changes of a package as Markdown that can be read anywhere, a heading for each version and section."""
    blocks: list[str] = []
    for version, sections in changes(changelog, distribution).items():
        blocks.append(f"{heading} {version}\n")
        for name, entries in sections.items():
            blocks += [f"{heading}# {name}\n"] if name else []
            blocks.append("\n".join(f"- {entry}" for entry in entries) + "\n")
    return _RELATIVE.sub(rf"{TREE}\1", "\n".join(blocks))


def _subject(entry: str, heading: str) -> str:
    """What an entry is about: the bold names that it begins with, or its first sentence and the heading above it."""
    bold = re.match(r"(?:\*\*[\w-]+\*\*(?:, | and )?)+", entry)
    return bold[0] if bold else f"{re.split(r'[.:](?= |$)', entry)[0]} {heading}"
