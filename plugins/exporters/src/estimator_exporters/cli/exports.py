"""List exports, or show the inputs and outputs of one.

    estimator exports runs/digits/export

    estimator exports runs/digits/export/final/1795235717

If a single export is shown, the checksums of its files are verified.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_exporters.bundle.manifest import MANIFEST, format_of, read_manifest


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("directory", metavar="DIRECTORY", help="an export or a directory of exports, or its URL")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Lists exports, or shows the description of one export."""
    from estimator_core.export import exports_in
    from estimator_core.storage import local_copy

    directory = local_copy(args.directory)
    if (directory / MANIFEST).is_file():
        manifest = read_manifest(directory, str(format_of(directory)))
        print(json.dumps(manifest, indent=1) if args.json else _described(args.directory, manifest))
        return 0
    found = exports_in(directory) or [path for child in sorted(directory.glob("*")) for path in exports_in(child)]
    if not found:
        raise ArgumentError(f"{args.directory} holds no export.")
    rows = [_row(path, directory) for path in found]
    print(json.dumps(rows, indent=1) if args.json else "\n".join(_line(row) for row in rows))
    return 0


def _row(path: Path, base: Path) -> dict[str, Any]:
    files = [file for file in path.rglob("*") if file.is_file()]
    try:
        content = json.loads((path / MANIFEST).read_bytes())
        known = {
            "format": content["format"],
            "step": content["global_step"],
            "signatures": sorted(content["signatures"]),
        }
    except (OSError, ValueError, KeyError, TypeError):
        known = {"format": "damaged", "step": None, "signatures": []}
    return {"path": str(path.relative_to(base)), **known, "bytes": sum(file.stat().st_size for file in files)}


def _line(row: dict[str, Any]) -> str:
    step = "-" if row["step"] is None else row["step"]
    size, signatures = row["bytes"] / 2**20, ", ".join(row["signatures"])
    return f"{row['path']:<32} {row['format']:<12} step {step:<9} {size:8.2f} MB  {signatures}"


def _described(directory: str, manifest: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in manifest["provenance"].get("versions", {}).items())
    lines = [
        f"{directory}: {manifest['format']}, step {manifest['global_step']}, all files intact",
        f"made with {versions}",
    ]
    for name, signature in manifest["signatures"].items():
        lines += [f"signature {name} ({signature['method']})", *_features("takes", signature["inputs"])]
        lines += _features("returns", signature["outputs"])
    if manifest["receiver"]:
        lines += ["raw requests", *_features("carry", manifest["receiver"])]
    return "\n".join(lines)


def _features(verb: str, features: dict[str, Any]) -> list[str]:
    return [
        f"  {verb} {name}: {feature['dtype']} "
        f"({', '.join('batch' if size is None else str(size) for size in feature['shape'])})"
        for name, feature in features.items()
    ]
