"""The changes of one package, taken from CHANGELOG.md."""

from __future__ import annotations

import re

_VERSION = re.compile(r"^## (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^- ", re.MULTILINE)


def changes(changelog: str, distribution: str) -> dict[str, list[str]]:
    r"""The entries about a package by version, newest first; versions without any are left out.

    An entry is about the packages whose names are bold before its colon, or which it names in the first sentence.

    Example:
        >>> changes("## 1.0\n- **estimator-a**: one.\n- **estimator-b**: two.\n", "estimator-b")
        {'1.0': ['**estimator-b**: two.']}
    """
    found: dict[str, list[str]] = {}
    _, *parts = _VERSION.split(changelog)
    for version, text in zip(parts[::2], parts[1::2], strict=True):
        entries = [" ".join(entry.split()) for entry in _ENTRY.split(text)[1:]]
        about = [
            entry for entry in entries if re.search(rf"(?<![\w-]){re.escape(distribution)}(?![\w-])", _subject(entry))
        ]
        if about:
            found[version] = about
    return found


def section(changelog: str, distribution: str, heading: str = "##") -> str:
    """The changes of a package as Markdown, a heading for each version."""
    parts = [
        f"{heading} {version}\n\n" + "\n".join(f"- {entry}" for entry in entries) + "\n"
        for version, entries in changes(changelog, distribution).items()
    ]
    return "\n".join(parts)


def _subject(entry: str) -> str:
    """What an entry is about: the bold names that it begins with, or its first sentence."""
    bold = re.match(r"(?:\*\*[\w-]+\*\*(?:, | and )?)+", entry)
    return bold[0] if bold else re.split(r"[.:](?= |$)", entry)[0]
