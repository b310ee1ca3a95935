"""Where the time of a training went."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from estimator_report.contract import ReportSource


class GoodputSection:
    """The time account of `GoodputHook`, from the newest checkpoint.

    Example:
        >>> from pathlib import Path
        >>> GoodputSection().body(ReportSource(model_dir=Path("no/such"), evaluation="", results={})) is None
        True
    """

    title, order = "Where the time went", 6

    def body(self, source: ReportSource) -> str | None:
        """A table, the longest entry first; None if no hook kept an account."""
        from estimator_core.checkpoint import all_checkpoints, read_checkpoint
        from estimator_core.errors import CheckpointError

        paths = all_checkpoints(str(source.model_dir))
        if not paths:
            return None
        try:
            hooks = read_checkpoint(paths[-1], ["hooks"]).hooks
        except CheckpointError:  # the section on checkpoints has its path; `estimator checkpoints` says what is wrong
            return None
        seconds = next((state["seconds"] for name, state in hooks.items() if "goodput" in name.lower()), {})
        return _table(seconds) if sum(seconds.values()) > 0 else None


def _table(seconds: Mapping[str, Any]) -> str:
    total = sum(seconds.values())
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{spent:.1f}</td><td>{100 * spent / total:.1f}%</td></tr>"
        for name, spent in sorted(seconds.items(), key=lambda entry: -entry[1])
        if spent > 0
    )
    return f"<table><tr><th>spent on</th><th>seconds</th><th>share</th></tr>{rows}</table>"
