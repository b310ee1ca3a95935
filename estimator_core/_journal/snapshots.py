"""The sum of a journal's beginning, kept so that a reader need not read every record.

A snapshot is a pure function of the records before it, so whoever writes it writes the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import Any

from estimator_core._journal.entries import (
    Ended,
    Evaluated,
    Exported,
    Saved,
    Segment,
    Took,
    entry_from_json,
    entry_to_json,
)
from estimator_core._journal.lineage import Lineage
from estimator_core._storage import Storage, StorageError

FORMAT = 1
#: A snapshot is written after so many records, and by a run that takes over after so many.
EVERY, EVERY_START = 64, 16
_FOLDER = "snapshots"
_MOST_BYTES = 64 << 20


def write_snapshot(storage: Storage, lineage: Lineage) -> None:
    """Keeps the sum so far; one that is there already stays. Without it readers only read more records."""
    line = json.dumps(_to_json(lineage), separators=(",", ":")).encode()
    data = line + b"\n" + hashlib.sha256(line).hexdigest().encode() + b"\n"
    with contextlib.suppress(StorageError):  # the record before it is made: its writer must not be told otherwise
        storage.put_new(key_of_snapshot(lineage), data)


def key_of_snapshot(lineage: Lineage) -> str:
    """Where the sum of so many records lies."""
    return f"{_FOLDER}/{lineage.identity}/{lineage.number:010d}"


def newest_snapshot(storage: Storage, identity: str, key: str | None = None) -> Lineage:
    """The sum in the newest snapshot that is whole; without one, that of no records.

    Args:
        storage: where they lie.
        identity: of the model_dir.
        key: only this one is looked at.
    """
    entries = [entry for entry in storage.list(f"{_FOLDER}/{identity}") if key in (None, entry.key)]
    for entry in reversed(entries):
        if entry.size <= _MOST_BYTES:
            with contextlib.suppress(StorageError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
                line, _, rest = storage.get(entry.key).partition(b"\n")
                if rest == hashlib.sha256(line).hexdigest().encode() + b"\n":
                    return _from_json(json.loads(line))
    return Lineage(identity=identity)


def _to_json(lineage: Lineage) -> dict[str, Any]:
    entries = [
        *lineage.starts,
        *lineage.saved.values(),
        *lineage.evaluations.values(),
        *(mark for told in lineage.marks.values() for mark in told),
        *lineage.exports.values(),
        *([lineage.ended] if lineage.ended else []),
    ]
    plain = {name: getattr(lineage, name) for name in ("identity", "number", "head", "epoch", "retired")}
    return {"format": FORMAT, **plain, "entries": [entry_to_json(entry) for entry in entries]}


def _from_json(value: Any) -> Lineage:
    """The sum itself, not the records: entries go where they belong, without the rules of `add`."""
    if value["format"] != FORMAT:
        raise ValueError(f"format {value['format']!r}")
    lineage = Lineage(
        identity=str(value["identity"]),
        number=int(value["number"]),
        head=str(value["head"]),
        epoch=int(value["epoch"]),
        retired={str(place): str(digest) for place, digest in value["retired"].items()},
    )
    for entry in map(entry_from_json, value["entries"]):
        match entry:
            case Took():
                lineage.starts.append(entry)
            case Saved():
                lineage.saved[entry.step] = entry
            case Evaluated():
                lineage.evaluations[entry.name, entry.step] = entry
            case Segment():
                lineage.marks.setdefault((entry.directory, entry.name), []).append(entry)
            case Exported():
                lineage.exports[entry.place] = entry
            case Ended():
                lineage.ended = entry
            case _:
                raise ValueError(f"{entry} in a snapshot")
    return lineage
