"""Tables of an Estimator, its RunConfig, its history and the metrics of an evaluation."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from estimator_core.checkpoint import all_checkpoints, checkpoint_step
from estimator_core.config import RunConfig
from estimator_core.export import exports_in
from estimator_hooks.notebook.html import curve, table

_MOST_ROWS = 20


def config_html(config: RunConfig) -> str:
    """Returns the fields of a RunConfig that differ from their defaults, then the other fields."""
    fields = dataclasses.fields(config)
    plain = RunConfig()
    rows = [(one.name, getattr(config, one.name), getattr(plain, one.name)) for one in fields]
    changed = [(name, value) for name, value, default in rows if repr(value) != repr(default)]
    others = [(name, value) for name, value, default in rows if repr(value) == repr(default)]
    more = (
        f"<details><summary>{len(others)} fields with default "
        f"values</summary>{table(('field', 'value'), others)}</details>"
    )
    return f"<b>RunConfig</b>{table(('field', 'value'), changed) if changed else ''}{more}"


def metrics_html(metrics: dict[Any, Any]) -> str | None:
    """Returns the result of an evaluation, or None for any other dictionary, which the notebook then shows as usual."""
    numbers = {name: value for name, value in metrics.items() if isinstance(name, str)}
    if "global_step" not in numbers or len(numbers) != len(metrics):
        return None
    rows = [(name, _plain(value)) for name, value in numbers.items() if not isinstance(value, list)]
    return table(("metric", "value"), rows)


def history_html(history: Any) -> str:
    """Returns the loss curve, and the newest rows of training and evaluations."""
    losses = [(row["step"], row["loss"]) for row in history.train if "loss" in row]
    parts = ["<div><b>History</b></div>", curve(losses)]
    for title, rows in (("training", history.train), ("evaluations", history.evaluations)):
        if rows:
            newest = rows[-_MOST_ROWS:]
            names = list(dict.fromkeys(name for row in newest for name, value in row.items() if not _is_long(value)))
            cells = [[_plain(row.get(name, "")) for name in names] for row in newest]
            parts.append(f"<div>{title}: {len(rows)} rows, the newest {len(newest)}</div>{table(names, cells)}")
    if history.stop_reason:
        parts.append(table(("training ended",), [(history.stop_reason,)]))
    return "".join(parts)


def estimator_html(estimator: Any) -> str:
    """Returns the model_dir of an estimator, its checkpoints and its exports."""
    model_dir = Path(estimator.model_dir)
    facts = [("model_dir", model_dir), ("trained", estimator.stop_reason or "not by this object")]
    parts = [f"<b>{type(estimator).__name__}</b>", table(("", ""), facts)]
    checkpoints = [(checkpoint_step(path), path) for path in all_checkpoints(str(model_dir))]
    if checkpoints:
        parts.append(table(("checkpoint", "path"), checkpoints[-_MOST_ROWS:]))
    exports = [path for below in sorted(model_dir.glob("export/*")) for path in exports_in(below)]
    if exports:
        parts.append(table(("exporter", "export"), [(path.parent.name, path) for path in exports[-_MOST_ROWS:]]))
    return "".join(parts)


def _is_long(value: Any) -> bool:
    return isinstance(value, list) or getattr(value, "ndim", 0) > 0


def _plain(value: Any) -> Any:
    if getattr(value, "ndim", None) == 0:
        return value.item()
    return f"{value.dtype}{list(value.shape)}" if _is_long(value) and not isinstance(value, list) else value
