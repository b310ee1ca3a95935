"""Compares this tree with another tree of the project, such as the previous release, round by round.

    uv run python benchmarks/two_trees.py --before PYTHON FOLDER [--rounds 15] [--only NAME ...] [--fail-below RATIO]
        [--json FILE]

PYTHON is the interpreter of the other tree's environment and FOLDER is its `benchmarks`. For each workload, both trees
have a permanent process. Only one of them works at a time, and they take turns to begin a round. With
`--fail-below 0.95` it fails if the whole interval of a workload is below 0.95 of the other tree's speed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from _report import Table, report, write
from _side_by_side import Comparison, compared
from _two_trees_worker import WORKLOADS

HERE = Path(__file__).resolve().parent
NOW, BEFORE = "this tree", "the other tree"


def start(python: str, folder: Path, workload: str) -> subprocess.Popen[str]:
    """Starts a process that runs rounds of the workload."""
    command = [python, str(HERE / "_two_trees_worker.py"), str(folder), workload]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def seconds_of(process: subprocess.Popen[str]) -> float:
    """Runs one round, and returns its seconds."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def measured(workload: str, before: tuple[str, Path], rounds: int, warm_up: int = 3) -> Comparison:
    """Runs rounds of both trees, in turn, and returns the comparison."""
    processes = {NOW: start(sys.executable, HERE, workload), BEFORE: start(*before, workload)}
    seconds: dict[str, list[float]] = {name: [] for name in processes}
    for index in range(warm_up + rounds):
        for name in list(processes)[:: 1 if index % 2 else -1]:
            took = seconds_of(processes[name])
            if index >= warm_up:
                seconds[name].append(took)
    for process in processes.values():
        process.communicate()
    return compared(seconds, NOW, BEFORE)


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", nargs=2, required=True, metavar=("PYTHON", "FOLDER"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--fail-below", type=float, default=0.0, metavar="RATIO")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    before = (args.before[0], Path(args.before[1]).resolve())
    tables: list[Table] = []
    lost: list[str] = []
    for workload in args.only:
        found = measured(workload, before, args.rounds)
        tables.append(report(workload, [found], steps=1, targets={(NOW, BEFORE): 0.98}, unit=("ms", 1e3)))
        if found.high < args.fail_below:
            lost.append(f"{workload} {found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}]")
    write(args.json, *tables)
    if lost:
        sys.exit(f"slower than {args.fail_below:g} of the other tree: {'; '.join(lost)}")


if __name__ == "__main__":
    main()
