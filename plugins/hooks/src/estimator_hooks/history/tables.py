"""The history of an Estimator as tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_hooks.history.files import JSON_LINES, read_rows, write_rows

if TYPE_CHECKING:
    from estimator_core.estimator import History


def to_dataframe(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Returns rows, such as `estimator.history.train`, as a pandas DataFrame indexed by step.

    Args:
        rows: mappings from column to value.

    Raises:
        ImportError: pandas is not installed.

    Example:
        >>> to_dataframe([{"step": 100, "loss": 0.5}, {"step": 200, "loss": 0.25}])["loss"].tolist()
        [0.5, 0.25]
    """
    import pandas as pd

    table = pd.DataFrame([dict(row) for row in rows])
    index = next((name for name in ("step", "global_step") if name in table.columns), None)
    return table if index is None else table.set_index(index)


def save_history(history: History, directory: str | os.PathLike[str]) -> None:
    """Writes `estimator.history` below a directory: `train/` and `evaluations/`, each with JSON lines and CSV.

    Args:
        history: the value of `estimator.history`.
        directory: the directory. It is created if it does not exist.
    """
    write_rows(Path(directory) / "train", history.train)
    write_rows(Path(directory) / "evaluations", history.evaluations)


def read_history(directory: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Returns the rows that `HistoryHook` or `save_history` wrote to a directory, oldest first.

    Args:
        directory: the model_dir, or `output_dir` of the hook.

    Example:
        >>> read_history("no/such/directory")
        []
    """
    return read_rows(Path(directory) / JSON_LINES)
