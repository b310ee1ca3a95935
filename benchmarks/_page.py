"""A page about all results of a folder: a picture of each workload, its notes, and how many targets were met.

    python benchmarks/_page.py OUTPUT.html RESULTS_FOLDER

The page contains its pictures. It needs only the standard library.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from html import escape
from pathlib import Path
from typing import Any

from _plot import MET, MISSED, OPEN, VERDICTS, plot, verdict

STYLE = "body{font:15px sans-serif;margin:2em auto;max-width:1050px} svg{max-width:100%} td,th{padding:2px 12px 2px 0}"

COLUMNS = (MET, OPEN, MISSED)


def page(results: Path) -> str:
    """Returns the page of the workloads whose JSON is in a folder, by name."""
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("*.json"))}
    parts = [f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Benchmarks</title><style>{STYLE}</style>']
    parts.append("<h1>Benchmarks</h1>\n<p>A ratio above 1 means that the first contestant is faster.</p>\n")
    rows = [counted(name, content) for name, content in found.items()]
    words = ("workload", *(VERDICTS[each] for each in COLUMNS), "machine")
    head = "".join(f'<th align="left">{word}</th>' for word in words)
    parts.append(f"<table><tr>{head}</tr>\n{''.join(rows)}</table>\n")
    for name, content in found.items():
        parts.append(f'<h2 id="{escape(name)}">{escape(name)}</h2>\n{plot(content["tables"])}\n')
    return "".join(parts) + "</html>\n"


def counted(name: str, content: dict[str, Any]) -> str:
    """Returns the row of a workload: its ratios by verdict, and its machine."""
    lines = [result for table in content["tables"] for result in table["results"]]
    counts = Counter(verdict(result) for result in lines)
    cells = [str(counts[each] or "") for each in COLUMNS]
    machine = content["environment"]
    where = f"{machine['cores']} cores, load {machine['load']}, Python {machine['python']}, jax {machine['jax']}"
    link = f'<a href="#{escape(name)}">{escape(name)}</a>'
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in (link, *cells, escape(where)))}</tr>\n"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    Path(sys.argv[1]).write_text(page(Path(sys.argv[2])), encoding="utf-8")
