"""Keeps the scalars of every N-th step on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.builtin_hooks import whole_steps
from estimator_core.hooks import Hook, Run
from estimator_hooks.history.files import CSV, JSON_LINES, append_rows, read_rows, write_csv, write_rows


class HistoryHook(Hook):
    """Writes a row of scalars every N steps to `history.jsonl`, and all rows to `history.csv` at the end.

    It does not interrupt dispatches of several steps, because values are delivered in bulk. When a killed run is
    resumed, the rows after the checkpoint are dropped.

    Args:
        every_n_steps: steps between rows, counted from step 0.
        output_dir: the directory of the files. Default: the model_dir of the run.

    Raises:
        ArgumentError: `every_n_steps` is not positive.

    Example:
        >>> HistoryHook(every_n_steps=10).next_step(0) is None  # no boundary
        True
    """

    def __init__(self, every_n_steps: int = 1, output_dir: str | os.PathLike[str] | None = None) -> None:
        self._every = whole_steps(self, "every_n_steps", every_n_steps)
        self._output_dir = output_dir
        self._directory = Path()
        self._writes = False

    def after_create(self, run: Run) -> None:
        """Follows all scalars. Drops rows of steps that will run again, and incomplete rows of a killed process."""
        self._directory = run.model_dir if self._output_dir is None else Path(self._output_dir)
        for name in sorted(name for name, kind in run.output_kinds.items() if kind == "scalar"):
            run.follow(name)
        self._writes = run.config.is_chief
        rows = read_rows(self._directory / JSON_LINES)
        if self._writes and (self._directory / JSON_LINES).exists():
            write_rows(self._directory, [row for row in rows if row["step"] <= run.step])

    def on_values(self, run: Run, steps: range, values: Mapping[str, np.ndarray]) -> None:
        """Writes the rows that are due."""
        due = [index for index, step in enumerate(steps) if step % self._every == 0]
        if self._writes and due:
            columns = {name: np.asarray(stacked) for name, stacked in values.items()}
            append_rows(
                self._directory,
                ({"step": steps[i], **{name: float(column[i]) for name, column in columns.items()}} for i in due),
            )

    def end(self, run: Run) -> None:
        """Writes the CSV."""
        if self._writes:
            rows = read_rows(self._directory / JSON_LINES)
            if rows:
                write_csv(self._directory / CSV, rows)

    def state(self) -> Mapping[str, Any]:
        """Returns nothing, because the rows are on disk when a checkpoint is committed."""
        return {}
