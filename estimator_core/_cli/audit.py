"""Prove that a model_dir holds what its journal says, each thing once; mend what an interrupted run left."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from estimator_core._checkpoint.audit import Audit, audit, repair


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator audit`."""
    parser.add_argument("model_dir", metavar="MODEL_DIR", help="directory of a run")
    parser.add_argument("--repair", action="store_true", help="mend what can be mended without loss, then look again")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Prints what is not as it should be; 1 if there is anything."""
    model_dir = Path(args.model_dir).absolute()
    found = audit(model_dir)
    if args.repair and any(finding.mendable for finding in found.findings):
        repair(model_dir)
        found = audit(model_dir)
    print(json.dumps(asdict(found), indent=2) if args.json else _text(found))
    return 1 if found.findings else 0


def _text(found: Audit) -> str:
    lines = [
        f"{finding.path}: {finding.text}{' (--repair mends it)' if finding.mendable else ''}"
        for finding in found.findings
    ]
    counts = (
        f"{found.records} records of {found.epochs} epochs; {found.checkpoints} checkpoints, {found.evaluations} "
        f"evaluations, {found.event_files} event files, each recorded once"
    )
    state = " A run is under way: what it has not recorded yet is not looked at." if found.under_way else ""
    verdict = f"{len(found.findings)} findings" if found.findings else "All is as the journal says"
    return "\n".join([*lines, f"{verdict}: {counts}.{state}"])
