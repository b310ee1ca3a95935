"""A section about the checkpoints and exports that a run kept."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from estimator_report.contract import ReportSource

_MOST_ROWS = 20


class KeptSection:
    """Shows checkpoints and exports with their sizes.

    Example:
        >>> KeptSection().body(ReportSource(model_dir=Path("no/such"), evaluation="", results={})) is None
        True
    """

    title, order = "Checkpoints and exports on disk", 40

    def body(self, source: ReportSource) -> str | None:
        """Returns two tables, or None if the run kept nothing."""
        from estimator_core.checkpoint import all_checkpoints, checkpoint_step
        from estimator_core.export import exports_in

        checkpoints = [(checkpoint_step(path), Path(path)) for path in all_checkpoints(str(source.model_dir))]
        exports = [path for below in sorted(source.model_dir.glob("export/*")) for path in exports_in(below)]
        if not checkpoints and not exports:
            return None
        parts: list[str] = []
        if checkpoints:
            rows = [(str(step), _size(path)) for step, path in checkpoints[-_MOST_ROWS:]]
            parts.append(_table(("checkpoint of step", "MB"), rows))
        if exports:
            rows = [(f"{path.parent.name}/{path.name}", _step(path), _size(path)) for path in exports[-_MOST_ROWS:]]
            parts.append(_table(("export", "step", "MB"), rows))
        return "\n".join(parts)


def _size(path: Path) -> str:
    return f"{sum(file.stat().st_size for file in path.rglob('*') if file.is_file()) / 1e6:.2f}"


def _step(path: Path) -> str:
    try:
        return str(json.loads((path / "manifest.json").read_text())["global_step"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    heads = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    lines = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{heads}</tr>{lines}</table>"
