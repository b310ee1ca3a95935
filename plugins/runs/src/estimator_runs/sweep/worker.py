"""A worker of a sweep, as a process: `python -m estimator_runs.sweep.worker JSON`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from estimator_core.errors import PreemptedError
from estimator_runs.workers import end_with_parent

_CAN_BE_RESUMED = 75


def main(text: str) -> int:
    """Works until all trials have ended, or the process that started this one has."""
    from estimator_runs.sweep.driving import open_search, work

    end_with_parent()
    said = json.loads(text)
    search = open_search(Path(said["path"]), Path(said["folder"]), said["settings"])
    try:
        work(search)
    except PreemptedError:
        return _CAN_BE_RESUMED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
