"""Reads the evaluations of a model_dir."""

from __future__ import annotations

from pathlib import Path

from estimator_core.errors import ArgumentError
from estimator_core.summaries import read_eval_metrics
from estimator_report.contract import ReportSource


def read_source(model_dir: Path, evaluation: str | None = None) -> ReportSource:
    """Returns the results of one evaluation of a run.

    Args:
        model_dir: the model_dir of the run.
        evaluation: the name of the evaluation. None: the one with the newest results.

    Raises:
        ArgumentError: the directory does not exist, contains several runs, or has no results of this name. A run
            without evaluations still has a page.
    """
    files = {_name(path.parent): path for path in model_dir.glob("eval*/metrics.jsonl")}
    if not files and evaluation is None and (model_dir / "run.json").exists():
        return ReportSource(model_dir=model_dir, evaluation="", results={})
    if not model_dir.is_dir():
        raise ArgumentError(f"There is no directory {model_dir}. Correct the path.")
    if not files:
        runs = [] if (model_dir / "run.json").exists() else sorted(model_dir.glob("*/*/run.json"))
        if runs:  # the directory of a sweep, a cross-validation or a population
            raise ArgumentError(
                f"{model_dir} is not a model_dir. It contains {len(runs)} runs, such as {runs[0].parent}. Give one of "
                f"them. `estimator runs plot {model_dir}` shows all on one page."
            )
        raise ArgumentError(
            f"{model_dir} has no results of evaluations. Evaluate first: estimator evaluate --model-dir {model_dir}."
        )
    if evaluation is None:
        evaluation = max(files, key=lambda name: files[name].stat().st_mtime)
    if evaluation not in files:
        raise ArgumentError(f"{model_dir} has no evaluation {evaluation!r}. It has {sorted(files)}.")
    return ReportSource(model_dir=model_dir, evaluation=evaluation, results=read_eval_metrics(files[evaluation].parent))


def _name(directory: Path) -> str:
    return "" if directory.name == "eval" else directory.name.removeprefix("eval_")
