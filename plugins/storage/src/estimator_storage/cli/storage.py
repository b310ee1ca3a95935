"""Examine a storage: a bucket, a container, a mount or a directory.

`estimator storage doctor URL` writes a few small objects below the URL, removes them again, and says whether runs are
safe there. It checks that the store refuses a second conditional write of a key, alone and among 16 at once. It checks
that lists, ranges and deletes show the latest changes. It names a missing permission and measures the speed. Exit
status 1: the store is not safe.
"""

from __future__ import annotations

import argparse

from estimator_core.errors import EstimatorError
from estimator_core.plugins import default_plugins
from estimator_core.storage import open_storage


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator storage`."""
    doctor = parser.add_subparsers(dest="action", required=True).add_parser(
        "doctor", help="say whether runs are safe in a storage, and how fast it is"
    )
    doctor.add_argument("url", metavar="URL", help="s3://bucket/prefix, az://..., gs://..., or a directory")
    doctor.add_argument("--megabytes", type=int, default=32, help="size of the object that is timed (default: 32)")


def run(args: argparse.Namespace) -> int:
    """Examines the storage, prints the findings, and returns 0 if runs are safe, else 1."""
    from estimator_storage.doctor import examine, measure, verdict

    try:
        storage = open_storage(args.url, default_plugins())
    except EstimatorError as error:
        print(error)
        return 1
    print(storage.url)
    findings = list(examine(storage))
    for finding in findings:
        print(f"  {'ok   ' if finding.ok else 'FAULT'}  {finding.check}: {finding.text}")
    safe = all(finding.ok for finding in findings)
    if safe:
        print(f"  {measure(storage, args.megabytes * 1_000_000)}.")
    storage.close()
    print(verdict(findings))
    return int(not safe)
