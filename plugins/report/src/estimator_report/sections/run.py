"""A section with the record of a run: environment, hyperparameters, settings, and how it ended."""

from __future__ import annotations

import html
import json
import shlex
from collections.abc import Mapping
from typing import Any

from estimator_report.contract import ReportSource


class RunSection:
    """Shows the run record of the model_dir.

    Example:
        >>> from pathlib import Path
        >>> RunSection().body(ReportSource(model_dir=Path("no/such"), evaluation="", results={})) is None
        True
    """

    title, order = "Run", 1

    def body(self, source: ReportSource) -> str | None:
        """Returns the record as tables, or None without a record."""
        try:
            record = json.loads((source.model_dir / "run.json").read_text())
        except (OSError, ValueError):
            return None
        if not isinstance(record, dict):
            return None
        facts: dict[str, Any] = {"command": shlex.join(map(str, record.get("arguments", ())))}
        if isinstance(ended := record.get("ended"), Mapping):
            word = "failed" if ended.get("failed") else "ended"
            facts[word] = f"at step {ended.get('step')}: {ended.get('reason')}"
        elif record.get("starts"):
            facts["ended"] = "not yet, or its process was killed"
        facts["starts"] = ", ".join(f"{one['time']} at step {one['step']}" for one in record.get("starts", ()))
        plugins = {one.get("distribution") or one.get("name"): one.get("version") for one in record.get("plugins", ())}
        parts = [
            _table(facts),
            _folded("Hyperparameters", record.get("hparams")),
            _folded("Versions", {**record.get("versions", {}), **plugins}),
            _folded("RunConfig", record.get("run_config")),
        ]
        return "\n".join(part for part in parts if part)


def _folded(title: str, values: object) -> str:
    if not isinstance(values, Mapping) or not values:
        return ""
    return f"<details><summary>{html.escape(title)}</summary>{_table(values)}</details>"


def _table(values: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(str(name))}</td><td>{html.escape(str(value))}</td></tr>"
        for name, value in values.items()
        if value not in (None, "")
    )
    return f'<table class="words">{rows}</table>'
