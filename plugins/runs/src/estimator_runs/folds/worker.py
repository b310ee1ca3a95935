"""A worker of a cross-validation, as a process: `python -m estimator_runs.folds.worker JSON`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from estimator_runs.workers import end_with_parent, worked


def main(text: str) -> int:
    """Runs the folds that do not belong to another process. Ends when the process that started this one has ended."""
    from estimator_runs.folds.driving import open_folds, work

    end_with_parent()
    said = json.loads(text)
    return worked(lambda: work(open_folds(Path(said["path"]), Path(said["folder"]), said["settings"])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
