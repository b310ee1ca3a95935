"""The tests beside each guarantee of docs/guarantees.md."""

from __future__ import annotations

import re

#: The tables of the page, by the word that the code and the mutants use for their rows.
TABLES = {
    "trap": "Faults of the obvious implementation",
    "fault": "Faults of tf.estimator, not repeated",
    "rule": "Rules of single parts",
}
_TEST = re.compile(r"`([^`:]+\.py::\w+(?:\[[^\]`]+\])?)`")


def tests_beside(page: str) -> dict[str, tuple[str, ...]]:
    """`file::test` of every test, by "trap 1", "fault 1", "rule 1", ... ."""
    found: dict[str, tuple[str, ...]] = {}
    for word, heading in TABLES.items():
        section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
        for line in section.splitlines():
            if match := re.match(r"\| (\d+) \|", line):
                found[f"{word} {match[1]}"] = tuple(_TEST.findall(line))
    return found
