"""A worker of a cross-validation, as a process: `python -m estimator_runs.folds.worker JSON`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from estimator_core.errors import PreemptedError
from estimator_runs.workers import end_with_parent

_CAN_BE_RESUMED = 75


def main(text: str) -> int:
    """Runs the folds that nobody else runs, unless the process that started this one has ended."""
    from estimator_runs.folds.driving import open_folds, work

    end_with_parent()
    said = json.loads(text)
    try:
        work(open_folds(Path(said["path"]), Path(said["folder"]), said["settings"]))
    except PreemptedError:
        return _CAN_BE_RESUMED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
