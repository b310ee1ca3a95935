"""Examine a storage: a bucket, a container, a mount or a directory.

`estimator storage doctor URL` writes a few small objects below the URL, removes them again, and says whether runs are
safe there. It checks that the store refuses a second conditional write of a key, alone and among 16 at once. It checks
that lists, ranges and deletes show the latest changes. It names a missing permission and measures the speed. Exit
status 1: the store is not safe.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from estimator_core.errors import ArgumentError
from estimator_core.plugins import default_plugins
from estimator_core.storage import is_url, open_storage


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator storage`."""
    doctor = parser.add_subparsers(dest="action", required=True).add_parser(
        "doctor", help="check whether runs are safe in a storage, and measure its speed"
    )
    doctor.add_argument("url", metavar="URL", help="s3://bucket/prefix, az://..., gs://..., or a directory")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.add_argument("--megabytes", type=int, default=32, help="size of the object that is timed (default: 32)")


def run(args: argparse.Namespace) -> int:
    """Examines the storage, prints the findings, and returns 0 if runs are safe, else 1."""
    from estimator_storage.doctor import Finding, examine, measure, verdict

    if not args.url:
        raise ArgumentError("URL must not be empty.")
    if not is_url(args.url) and not Path(args.url).is_dir():  # it would be created
        raise ArgumentError(f"There is no directory {args.url}. Create it, or give a URL such as s3://bucket/prefix.")
    if args.megabytes < 1:
        raise ArgumentError(f"--megabytes must be at least 1, given: {args.megabytes}.")
    storage = open_storage(args.url, default_plugins())
    if not args.json:
        print(storage.url)
    findings: list[Finding] = []
    for finding in examine(storage):
        findings.append(finding)
        if not args.json:
            print(f"  {'ok   ' if finding.ok else 'FAULT'}  {finding.check}: {finding.text}")
    safe = all(finding.ok for finding in findings)
    speed = measure(storage, args.megabytes * 1_000_000) if safe else ""
    storage.close()
    if args.json:
        told = {"url": storage.url, "safe": safe, "findings": [asdict(one) for one in findings], "speed": speed}
        print(json.dumps(told))
        return int(not safe)
    if speed:
        print(f"  {speed}.")
    print(verdict(findings))
    return int(not safe)
