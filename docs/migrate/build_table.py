"""Writes table.md, every name of TensorFlow that estimator-migration knows; `--check` fails where it is not current."""

import sys
from itertools import groupby
from pathlib import Path

from estimator_migration import Row, table

PAGE = Path(__file__).with_name("table.md")
HEAD = """# Every name

This page lists the replacement for each name of TensorFlow that `estimator migrate check` knows.
`python docs/migrate/build_table.py` writes it from the data. `tf.compat.v1.x` is listed as `tf.x`, and `tf_slim` as
`tf.contrib.slim`. `X()` is an instance of X, and `any` is an object of unknown class. `hook`, `listener` and
`optimizer` are methods of your own classes. Where a name is renamed in part, `rewrite` changes the forms with an exact
replacement, and `check` reports for each use whether it has one.
"""


def module_of(row: Row) -> str:
    """The section that a row stands in."""
    parts = row.name.split(".")
    depth = 3 if parts[:2] == ["tf", "contrib"] else 2
    return ".".join(parts[:depth]) if len(parts) > depth else ".".join(parts[:-1]) or row.name


def cell(text: str) -> str:
    """A text as a cell of a table."""
    return text.replace("|", "\\|")


def page() -> str:
    """The page."""
    lines = [HEAD]
    rows = sorted(table().values(), key=lambda row: (module_of(row), row.name))
    for module, group in groupby(rows, key=module_of):
        lines += [f"## {module}", "", "| name | becomes | home | |", "|---|---|---|---|"]
        lines += [
            f"| `{row.name}` | {row.verdict.value} | {f'`{row.place}`' if row.place else ''} | {cell(row.how)} |"
            for row in group
        ]
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Writes the page, or compares it."""
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    return int(PAGE.read_text(encoding="utf-8") != page())


if __name__ == "__main__":
    sys.exit(main())
