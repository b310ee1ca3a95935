"""Runs many schedules of the model_dir scenario from seeds: `python -m tests.journal.explore 100000 --faults 2`."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed

from estimator_core.testing import simulation

KINDS = (*simulation.WITHIN_CONTRACT, *simulation.BY_HAND)


def explored(faults: int, schedules: int, seed: int) -> simulation.Report:
    """Explores one share of the schedules."""
    return simulation.explore(
        simulation.model_dir_scenario(), faults=faults, schedules=schedules, seed=seed, kinds=KINDS
    )


def main() -> int:
    """Explores all schedules. The exit code is 1 if an obligation is violated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("schedules", type=int)
    parser.add_argument("--faults", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shares", type=int, default=20)
    options = parser.parse_args()
    share = -(-options.schedules // options.shares)
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        futures = [pool.submit(explored, options.faults, share, options.seed + one) for one in range(options.shares)]
        reports: list[simulation.Report] = []
        for future in as_completed(futures):
            reports.append(future.result())
            print(reports[-1], flush=True)
    total = sum(report.schedules for report in reports)
    seconds = sum(report.seconds for report in reports)
    wrong = sum(report.failure is not None for report in reports)
    print(
        f"{total} schedules of {options.faults} faults, {total / seconds:.0f} a second and process, {wrong} violations"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
