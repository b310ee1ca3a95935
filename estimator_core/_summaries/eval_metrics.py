"""The results of evaluations, one JSON line each in `<eval_dir>/metrics.jsonl`.

Early stopping and the best exporter read only this file. A single call writes a line, so a killed process leaves at
most one torn line, which readers skip.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from estimator_core._files import expanded, is_url
from estimator_core.errors import ArgumentError

FILE_NAME: Final = "metrics.jsonl"

logger = logging.getLogger(__name__)


def read_eval_metrics(eval_dir: str | os.PathLike[str], *, with_checkpoint: bool = False) -> dict[int, dict[str, Any]]:
    """Returns the recorded evaluations of a directory, by global step, in the order of the steps.

    If a step has several evaluations, the newest counts. A torn line is skipped with a warning.

    Args:
        eval_dir: the result of `Estimator.eval_dir(name)`.
        with_checkpoint: whether to skip evaluations that a training run made between its checkpoints.

    Returns:
        `{global_step: {metric: value}}`; empty if the directory does not exist or nothing was recorded.

    Raises:
        ArgumentError: `eval_dir` is a URL.

    Example:
        >>> read_eval_metrics("no/such/directory")
        {}
    """
    records = read_eval_records(eval_dir, with_checkpoint=with_checkpoint)
    return {step: dict(record["metrics"]) for step, record in records.items()}


def read_eval_records(eval_dir: str | os.PathLike[str], *, with_checkpoint: bool = False) -> dict[int, dict[str, Any]]:
    """Like `read_eval_metrics`, but with the complete records."""
    where = expanded(os.fspath(eval_dir))
    if is_url(where):
        raise ArgumentError(
            f"eval_dir is {where!r}, but results are read from a directory of this machine. An Estimator of this "
            "model_dir copies them here: read_eval_metrics(estimator.eval_dir())."
        )
    path = Path(where) / FILE_NAME
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    results: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if "resumed_from" in record:  # releases without a journal wrote it
                results = {step: kept for step, kept in results.items() if step <= record["resumed_from"]}
            elif not (with_checkpoint and record.get("between_checkpoints")):
                results[int(record["global_step"])] = {**record, "metrics": dict(record["metrics"])}
        except (ValueError, KeyError, TypeError, RecursionError):
            logger.warning("%s, line %d is torn or not an evaluation record; it is skipped.", path, number)
    return dict(sorted(results.items()))


def append_eval_metrics(
    eval_dir: str | os.PathLike[str],
    step: int,
    metrics: Mapping[str, object],
    checkpoint_path: str | os.PathLike[str] | None,
    *,
    between_checkpoints: bool = False,
) -> None:
    """Records one evaluation.

    Args:
        eval_dir: the result of `Estimator.eval_dir(name)`. It is created if it does not exist.
        step: the global step of the evaluated variables.
        metrics: values by name: numbers, strings, or arrays (stored as lists).
        checkpoint_path: the evaluated checkpoint; None for variables in memory.
        between_checkpoints: whether no checkpoint will ever contain the evaluated values.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     append_eval_metrics(directory, 10, {"loss": np.float32(0.5)}, None)
        ...     read_eval_metrics(directory)
        {10: {'loss': 0.5}}
    """
    record = {
        "global_step": int(step),
        "metrics": plain_metrics(metrics),
        "checkpoint_path": None if checkpoint_path is None else os.fspath(checkpoint_path),
        "wall_time": time.time(),
        **({"between_checkpoints": True} if between_checkpoints else {}),
    }
    append_line(eval_dir, json.dumps(record) + "\n")


def plain_metrics(metrics: Mapping[str, object]) -> dict[str, Any]:
    """Returns the values of an evaluation as JSON values."""
    return {name: _plain(value) for name, value in metrics.items()}


def append_line(eval_dir: str | os.PathLike[str], text: str) -> None:
    """Adds a line to the results of a directory, with one call.

    If the last line is incomplete, the new one is still separate.
    """
    path = Path(eval_dir) / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    line = text.encode()
    with path.open("ab+") as file:
        if _ends_torn(file):
            line = b"\n" + line
        file.write(line)


def _ends_torn(file: BinaryIO) -> bool:
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"


def _plain(value: object) -> Any:
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return np.asarray(value).tolist()
