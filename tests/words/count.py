"""Counts the faults of every file: `python -m tests.words.count [FILE...]` lists them.

`counts.json` records how many each file may have. A file that it does not name may have none. `python -m
tests.words.count --lower` writes the lower numbers after a rewrite. No option raises one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.words.prose import passages
from tests.words.rules import Fault, faults

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("counts.json")
PATTERNS = ("*.md", "docs/**/*.md", "plugins/*/README.md", "estimator_core/**/*.py", "plugins/*/src/**/*.py")
# Generated from docstrings or tables of data, which are checked in their source, and a page with examples of faults.
GENERATED = frozenset({"docs/plugins/reference.md", "docs/migrate/table.md", "docs/export_matrix.md", "docs/style.md"})


def checked() -> Iterator[Path]:
    """Yields every file whose words are checked."""
    for pattern in PATTERNS:
        yield from (path for path in sorted(ROOT.glob(pattern)) if name_of(path) not in GENERATED)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def faults_of(path: Path) -> list[Fault]:
    """Returns the faults of a file in the order of its lines."""
    return sorted((one for passage in passages(path) for one in faults(passage)), key=lambda one: one.line)


def recorded() -> dict[str, int]:
    """Returns the number of faults that each file may have."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def lowered(record: dict[str, int], counts: dict[str, int]) -> dict[str, int]:
    """Returns the record with all lower numbers. A file without faults has no line."""
    return {name: least for name, most in record.items() if (least := min(most, counts.get(name, 0)))}


def main() -> int:
    """Lists faults, or lowers the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="files to look at; all without one")
    parser.add_argument("--lower", action="store_true", help="write the numbers that became lower")
    arguments = parser.parse_args()
    found = {path: faults_of(path) for path in (map(Path.resolve, arguments.files) if arguments.files else checked())}
    if arguments.lower:
        if arguments.files:
            parser.error("--lower looks at all files")
        record = lowered(recorded(), {name_of(path): len(ones) for path, ones in found.items()})
        RECORD.write_text(json.dumps(record, indent=0, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    for path, ones in found.items():
        for one in ones:
            print(f"{name_of(path)}:{one}")
    print(f"{sum(map(len, found.values()))} faults", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
