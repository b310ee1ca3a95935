"""A section about the use of time in a training."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from estimator_report.contract import ReportSource

_SLOWEST = 8


class GoodputSection:
    """Shows the time account of `GoodputHook`, from the newest checkpoint.

    Example:
        >>> from pathlib import Path
        >>> GoodputSection().body(ReportSource(model_dir=Path("no/such"), evaluation="", results={})) is None
        True
    """

    title, order = "Where the time went", 6

    def body(self, source: ReportSource) -> str | None:
        """Returns tables of the entries and of the slowest hooks, the longest first, or None without an account."""
        from estimator_core.checkpoint import all_checkpoints, read_checkpoint
        from estimator_core.errors import CheckpointError

        paths = all_checkpoints(str(source.model_dir))
        if not paths:
            return None
        try:
            hooks = read_checkpoint(paths[-1], ["hooks"]).hooks
        except CheckpointError:  # the section on checkpoints has its path, and `estimator checkpoints` shows the fault
            return None
        account = next((state for name, state in hooks.items() if "goodput" in name.lower()), {"seconds": {}})
        seconds = account["seconds"]
        total = sum(seconds.values())
        if total <= 0:
            return None
        slowest = dict(sorted(account.get("hooks", {}).items(), key=lambda entry: -entry[1])[:_SLOWEST])
        more = f"<h3>Slowest hooks</h3>{_table('hook', slowest, total)}" if any(slowest.values()) else ""
        return _table("spent on", seconds, total) + more


def _table(head: str, seconds: Mapping[str, Any], total: float) -> str:
    spent = [(name, value) for name, value in sorted(seconds.items(), key=lambda entry: -entry[1]) if value > 0]
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{value:.{1 if value >= 1 else 3}f}</td>"
        f"<td>{100 * value / total:.1f}%</td></tr>"
        for name, value in spent
    )
    return f"<table><tr><th>{head}</th><th>seconds</th><th>share</th></tr>{rows}</table>"
