"""The report of `estimator run`: the metrics, a few predictions, and the locations of all results."""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import EstimatorError
from estimator_core.storage import is_url
from estimator_experiment.cli.json_text import json_text

#: The minimum number of characters of every column of a table.
_NARROWEST = 8
_NUMBER = re.compile(r"[-+]?[\d.,]+(?:e[-+]?\d+)?")


def show(experiment: Any, result: Any, *, predictions: int) -> None:
    """Prints the report of a finished run."""
    estimator = experiment.estimator
    for heading, metrics in _evaluations(result):
        shown = [(name, number(value)) for name, value in metrics.items() if not isinstance(value, list)]  # no slices
        print(f"\n{heading}{table(shown, ('metric', 'value'))}")
    if estimator.stop_reason:
        print(f"\nTraining ended: {estimator.stop_reason}.")
    if predictions and estimator.latest_checkpoint():
        print("\n" + _predictions(experiment, predictions))
    print("\n" + places(estimator))


def _predictions(experiment: Any, count: int) -> str:
    """Returns a table of predictions, or the reason why there is none. A run without predictions is successful.

    Faults of files, checkpoints, hooks, processes and strict plugins stay errors.
    """
    try:
        rows = list(itertools.islice(experiment.estimator.predict(experiment.eval_input_fn), count))
    except Exception as error:
        if isinstance(error, OSError) or (isinstance(error, EstimatorError) and isinstance(error, RuntimeError)):
            raise
        from estimator_experiment.faults import line_of

        told = f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(".") + line_of(error)
        return f"No predictions are shown, because predict fails: {told}. Add --predictions 0 to skip them."
    if not rows:  # for example, the evaluation has used up an iterator
        return "No predictions are shown: the evaluation input yields no more examples."
    lines = [(str(index), *map(number, _values(row))) for index, row in enumerate(rows)]
    return f"Predictions of the first evaluation examples\n{fitted(lines, ('', *_names(rows[0])))}"


def as_json(experiment: Any, result: Any) -> str:
    """Returns the report for programs, without predictions: one object on one line."""
    estimator = experiment.estimator
    return json_text(
        {
            "model_dir": _model_dir(estimator),
            "stop_reason": estimator.stop_reason,
            "checkpoint": _asked_for(estimator, estimator.latest_checkpoint()),
            "metrics": {name or "": json_value(value) for name, value in (_metrics(result) or {}).items()},
            "exports": _exports(estimator),
        }
    )


def json_value(value: Any) -> Any:
    """Returns a metric as a JSON value."""
    return value.tolist() if hasattr(value, "tolist") else value


def _evaluations(result: Any) -> list[tuple[str, Mapping[Any, Any]]]:
    """Returns a heading and the metrics of each evaluation. A program with several EvalSpecs returns them by name."""
    metrics: Mapping[Any, Any] = _metrics(result) or {}
    if not any(isinstance(value, Mapping) for value in metrics.values()):
        return [("", metrics)] if metrics else []
    return [(f"evaluation {name or 'without a name'}\n", found) for name, found in metrics.items()]


def _metrics(result: Any) -> Mapping[Any, Any] | None:
    return result[0] if isinstance(result, tuple) else result if isinstance(result, Mapping) else None


def _exports(estimator: Any) -> list[str]:
    paths = (Path(estimator.model_dir) / "export").glob("*/*")
    return sorted(_asked_for(estimator, str(path)) or "" for path in paths if path.name.isdigit())


def _asked_for(estimator: Any, path: str | None) -> str | None:
    """Returns a path in the model_dir of the user. For a URL, the run works in a copy, which is deleted."""
    return None if path is None else _model_dir(estimator) + path.removeprefix(estimator.model_dir.rstrip("/"))


def _model_dir(estimator: Any) -> str:
    return estimator.config.model_dir.rstrip("/") or "/"


def places(estimator: Any) -> str:
    """Returns the locations of curves, checkpoints and exports, with the commands that show them."""
    model_dir = _model_dir(estimator)
    checkpoint = _asked_for(estimator, estimator.latest_checkpoint())
    word = shlex.quote(model_dir)
    lines = [
        f"curves       {model_dir}        view: tensorboard --logdir {word}",
        f"checkpoints  {checkpoint or 'none'}        view: estimator checkpoints {word}",
    ]
    exports = _exports(estimator)
    if exports:
        below = shlex.quote(f"{model_dir}/export") if is_url(model_dir) else word
        lines.append(f"exports      {exports[-1]}        view: estimator exports {below}")
    lines.append(f"run record   {model_dir}/run.json")
    return "\n".join(lines)


def table(rows: list[tuple[str, ...]], head: tuple[str, ...]) -> str:
    """Returns rows of text in aligned columns. Characters that would break a line become escapes.

    Example:
        >>> print(table([("a", "1")], ("name", "value")))
        name  value
        ----  -----
        a     1
    """
    head, *rows = [tuple(map(_printable, row)) for row in [head, *rows]]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [head, tuple("-" * width for width in widths), *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def fitted(rows: list[tuple[str, ...]], head: tuple[str, ...], *, width: int | None = None) -> str:
    """Returns the same table, with long cells shortened in the middle if a line is wider than the terminal.

    Args:
        rows: the cells.
        head: the names of the columns.
        width: the number of characters of a line. None: the width of the terminal; a file or a pipe receives full
            lines.

    Example:
        >>> print(fitted([("runs/of/a/long/name", "1")], ("run", "value"), width=18))
        run          value
        -----------  -----
        runs...name  1
    """
    if width is None:
        if not (sys.stdout and sys.stdout.isatty()):  # None: it is closed
            return table(rows, head)
        width = shutil.get_terminal_size().columns
    head, *rows = [tuple(map(_printable, row)) for row in [head, *rows]]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    least = [
        max([_NARROWEST, *(len(row[column]) for row in rows if _is_number(row[column]))]) for column in range(len(head))
    ]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        room = [have - need for have, need in zip(widths, least, strict=True)]
        if max(room) <= 0:
            break  # a number is never cut
        widths[room.index(max(room))] -= 1
    cut = [tuple(map(_shortened, row, widths)) for row in [head, *rows]]
    return table(cut[1:], cut[0])


def _printable(cell: str) -> str:
    """Returns a cell on one line. Names of directories or metrics may contain line breaks, tabs or terminal codes."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in cell)


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _shortened(cell: str, width: int) -> str:
    left = max(width - 3, 2)
    return cell if len(cell) <= width else f"{cell[: left - left // 2]}...{cell[len(cell) - left // 2 :]}"


def number(value: Any) -> str:
    """Returns a value in a form that is short enough for a table cell."""
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array.item():.4g}" if array.dtype.kind == "f" else str(array.item())
    if array.size <= 10 and array.ndim == 1:
        return "[" + " ".join(f"{item:.3g}" if array.dtype.kind == "f" else str(item) for item in array.tolist()) + "]"
    return f"{array.dtype}{list(array.shape)}"


def elapsed(began: float) -> str:
    """Returns the seconds since `time.monotonic()` was `began`."""
    return f"{time.monotonic() - began:.1f} s"


def _names(row: Any) -> list[str]:
    return list(row) if isinstance(row, Mapping) else ["prediction"]


def _values(row: Any) -> list[Any]:
    return list(row.values()) if isinstance(row, Mapping) else [row]
