"""A worker of a sweep, as a process: `python -m estimator_runs.sweep.worker JSON`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from estimator_runs.workers import end_with_parent, worked


def main(text: str) -> int:
    """Works until all trials have ended, or until the process that started this one has ended."""
    from estimator_runs.sweep.driving import open_search, work

    end_with_parent()
    said = json.loads(text)
    return worked(lambda: work(open_search(Path(said["path"]), Path(said["folder"]), said["settings"])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
