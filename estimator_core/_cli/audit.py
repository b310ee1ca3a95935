"""Check a model_dir against its journal, and repair what an interrupted run left."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path

from estimator_core._checkpoint.audit import Audit, audit, audit_in_store, repair
from estimator_core._files import is_url
from estimator_core._storage.opening import at_url, open_storage
from estimator_core.errors import ArgumentError


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator audit`."""
    parser.add_argument("model_dir", metavar="MODEL_DIR", help="directory of a run, or its URL")
    parser.add_argument("--repair", action="store_true", help="make the repairs that lose nothing, then check again")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Prints the findings. Returns 1 if there are any."""
    found = _at_url(args.model_dir, args.repair) if is_url(args.model_dir) else _here(args.model_dir, args.repair)
    print(json.dumps(asdict(found), indent=2) if args.json else _text(found))
    return 1 if found.findings else 0


def _here(location: str, mend: bool) -> Audit:
    model_dir = Path(os.path.expanduser(location)).absolute()
    found = audit(model_dir)
    if mend and any(finding.mendable for finding in found.findings):
        repair(model_dir)
        found = audit(model_dir)
    return found


def _at_url(location: str, mend: bool) -> Audit:
    if mend:
        raise ArgumentError(f"--repair works only on directories. The next run repairs the remains at {location}.")
    return audit_in_store(open_storage(location.rstrip("/"), make=False), at_url(location, None).faults_in_store)


def _text(found: Audit) -> str:
    lines = [
        f"{finding.path}: {finding.text}{' (--repair fixes it)' if finding.mendable else ''}"
        for finding in found.findings
    ]
    counts = (
        f"records {found.records}, epochs {found.epochs}, checkpoints {found.checkpoints}, evaluations "
        f"{found.evaluations}, event files {found.event_files}, each recorded once"
    )
    state = " A run is in progress. Work that it has not recorded yet is not checked." if found.under_way else ""
    count = len(found.findings)
    verdict = f"{count} finding{'s' * (count > 1)}" if count else "Everything matches the journal"
    return "\n".join([*lines, f"{verdict}: {counts}.{state}"])
