"""List the checkpoints of a model_dir, show the variables or manifest of one, or compare two."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from estimator_core._checkpoint.catalog import (
    CHECKPOINTS_DIR,
    all_checkpoints,
    fetched,
    listed,
    model_dir_of,
    resolve_checkpoint,
    unnamed,
)
from estimator_core._checkpoint.diff import compare, type_text
from estimator_core._checkpoint.manifest import MANIFEST_FILE, ArrayEntry, Manifest, read_manifest
from estimator_core.errors import CheckpointCorruptError, CheckpointError, CheckpointNotFoundError


class UnnamedCheckpointError(CheckpointError):
    """A directory has the name of a checkpoint, but no run has saved it there."""


def listing(checkpoints: Iterable[tuple[Path, Manifest | CheckpointError]]) -> tuple[Any, str]:
    """Returns one row per checkpoint: step, time, size, variables, parameters."""
    rows: list[dict[str, Any]] = []
    for path, found in checkpoints:
        if isinstance(found, CheckpointError):
            rows.append({"path": str(path), "state": _state(found), "error": str(found)})
            continue
        rows.append(
            {
                "path": str(path),
                "step": found.step,
                "saved": _time(found.created),
                "megabytes": round(sum(e.bytes for named in found.arrays.values() for e in named.values()) / 1e6, 1),
                "variables": len(found.entries("variables", "model_state")),
                "parameters": sum(math.prod(entry.shape) for entry in found.entries("variables").values()),
            }
        )
    head = ("step", "saved", "MB", "variables", "parameters", "path")
    cells = [
        ("-", row["state"], "-", "-", "-", row["path"])
        if "error" in row
        else (row["step"], row["saved"], row["megabytes"], row["variables"], f"{row['parameters']:,}", row["path"])
        for row in rows
    ]
    return rows, "\n".join([_table(head, cells), *(row["error"] for row in rows if "error" in row)])


def _state(error: CheckpointError) -> str:
    """Returns the reason why a checkpoint cannot be shown, in one or two words."""
    if isinstance(error, UnnamedCheckpointError):
        return "NOT USED"
    return "DAMAGED" if isinstance(error, (CheckpointCorruptError, CheckpointNotFoundError)) else "NEWER FORMAT"


def variables(manifest: Manifest) -> tuple[Any, str]:
    """Returns one row per variable: name, shape, dtype, and whether it is trained."""
    rows: list[dict[str, Any]] = [
        {"name": name, "shape": list(entry.shape), "dtype": entry.dtype, "bytes": entry.bytes, "trainable": trainable}
        for item, trainable in (("variables", True), ("model_state", False))
        for name, entry in sorted(manifest.arrays.get(item, {}).items())
    ]
    cells = [
        (row["name"], "x".join(map(str, row["shape"])) or "scalar", row["dtype"], "yes" if row["trainable"] else "no")
        for row in rows
    ]
    total = sum(math.prod(row["shape"]) for row in rows if row["trainable"])
    return rows, f"{_table(('variable', 'shape', 'dtype', 'trained'), cells)}\n{total:,} trained parameters"


def manifest(path: Path) -> tuple[Any, str]:
    """Returns the manifest without its list of arrays, which `--variables` shows."""
    read_manifest(path)  # refuses an export
    body = json.loads((path / MANIFEST_FILE).read_bytes())
    body["arrays"] = {item: f"{len(named)} arrays" for item, named in body["arrays"].items()}
    return {"path": str(path), **body}, f"{path}\n{json.dumps(body, indent=2)}"


def difference(a: tuple[str, Manifest], b: tuple[str, Manifest]) -> tuple[Any, str]:
    """Returns the variables and packages that differ. Contents are compared by checksum, without reading them."""
    (name_a, first), (name_b, second) = a, b
    everything = {*first.arrays, *second.arrays} - {"clock", "hooks"}
    items = sorted(item for item in everything if ":" not in item)  # changed rows of arrays belong to their arrays
    rows: dict[str, Any] = {"a": name_a, "b": name_b, "packages": _packages(first, second)}
    lines = [f"{package}: {name_a} {x}, {name_b} {y}" for package, (x, y) in rows["packages"].items()]
    for item in items:
        left, right = first.arrays.get(item, {}), second.arrays.get(item, {})
        diff = compare(left, right)
        changed = [name for name in left if name in right and _contents(left[name]) != _contents(right[name])]
        rows[item] = {
            "only_a": dict(diff.only_a),
            "only_b": dict(diff.only_b),
            "shape": dict(diff.shapes),
            "dtype": dict(diff.dtypes),
            "contents": changed,
        }
        both = sum(name in right for name in left)
        lines += [f"{item}: {len(changed)} of {both} common arrays differ in contents"]
        lines += [f"  {line}" for line in diff.describe(name_a, name_b, most=10_000).splitlines()]
    return rows, "\n".join(lines)


def _contents(entry: ArrayEntry) -> tuple[str, str]:
    return type_text(entry), entry.crc32


def _packages(a: Manifest, b: Manifest) -> dict[str, tuple[str, str]]:
    pairs = {name: (a.packages.get(name, "-"), b.packages.get(name, "-")) for name in {**a.packages, **b.packages}}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(sep=" ", timespec="seconds")


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    table = [tuple(map(str, row)) for row in (head, *rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return "\n".join("  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in table)


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator checkpoints`."""
    parser.add_argument(
        "directory", metavar="DIR", help="a model_dir or a checkpoint (MODEL_DIR/checkpoints/100), or its URL"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--variables", action="store_true", help="print names, shapes and dtypes of the newest checkpoint in DIR"
    )
    what.add_argument("--manifest", action="store_true", help="print the newest manifest in DIR, without its arrays")
    what.add_argument(
        "--diff", nargs=2, metavar=("A", "B"), help="compare two checkpoints, named by steps of DIR or by paths"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Prints the requested information."""
    directory = fetched(args.directory, manifests=True)
    if args.diff:
        a, b = (_one_of(directory, name) for name in args.diff)
        rows, text = difference(a, b)
    elif args.variables:
        rows, text = variables(read_manifest(resolve_checkpoint(directory)))
    elif args.manifest:
        rows, text = manifest(resolve_checkpoint(directory))
    else:
        rows, text = listing(_listed(directory))
    told = json.dumps(rows, indent=2) if args.json else text
    if directory != Path(args.directory):  # a copy of the contents of a URL, which is deleted with this process
        told = told.replace(str(directory), args.directory.rstrip("/").removesuffix(f"/{CHECKPOINTS_DIR}"))
    print(told)
    return 0


def _listed(directory: Path) -> Sequence[tuple[Path, Manifest | CheckpointError]]:
    """Returns the recorded checkpoints, then existing directories that do not count."""
    model_dir = model_dir_of(directory)
    found: list[tuple[Path, Manifest | CheckpointError]] = []
    for one in listed(model_dir):
        if one.problem:
            found.append((one.path, CheckpointCorruptError(f"{one.path}: {one.problem}")))
        else:
            found.append((one.path, _manifest_or_error(one.path)))
    for path in unnamed(model_dir):
        found.append(
            (path, UnnamedCheckpointError(f"{path} is not used: no run of this model_dir has saved it there."))
        )
    return found or [(path := resolve_checkpoint(directory), read_manifest(path))]


def _manifest_or_error(path: Path) -> Manifest | CheckpointError:
    try:
        return read_manifest(path)
    except CheckpointError as error:
        return error


def _one_of(directory: Path, name: str) -> tuple[str, Manifest]:
    """Returns a checkpoint from its step in a model_dir, or from its path."""
    path = next((path for path in all_checkpoints(directory) if Path(path).name == name), name)
    try:
        return name, read_manifest(resolve_checkpoint(path))
    except CheckpointNotFoundError:
        steps = ", ".join(Path(path).name for path in all_checkpoints(directory))
        there = f"the steps {steps}" if steps else "no checkpoint"
        raise CheckpointNotFoundError(
            f"There is no checkpoint {name!r}: {directory} has {there}, and no checkpoint has this path."
        ) from None
