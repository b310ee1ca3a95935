"""The digests of a long file of results, stored in a file next to it, so that many long runs are parsed only once.

They are valid only for the exact file that was read. If the directory cannot be written, nothing is stored.
"""

from __future__ import annotations

import contextlib
import json
import time
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator_core.storage import draft_of
from estimator_runs.records.digest import Digest, file_digests

#: The name of the file, in the directory of the results.
KEPT = "metrics.digests.json"
#: The number of bytes below which results are parsed as quickly as their digests are read.
LEAST_BYTES = 1 << 18
#: The age in nanoseconds below which a file could change once more without another time stamp.
_YOUNG = 2_000_000_000
_FORMAT = 1


def known_digests(path: Path) -> dict[str, Digest]:
    """Returns the digest of every metric in a file of results. A long file is parsed only if it has changed."""
    about = path.stat()
    if about.st_size < LEAST_BYTES:
        return file_digests(path)
    identity = [_FORMAT, about.st_size, about.st_mtime_ns, about.st_ino]
    kept = path.with_name(KEPT)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        said = json.loads(kept.read_bytes())
        if said["of"] == identity:
            return {name: _digest(one) for name, one in said["metrics"].items()}
    found = file_digests(path)
    if abs(time.time_ns() - about.st_mtime_ns) > _YOUNG:
        _keep(kept, {"of": identity, "metrics": {name: _told(one) for name, one in found.items()}})
    return found


def _keep(path: Path, told: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError), draft_of(path, durable=False) as draft:  # a torn file is written again
        draft.write_text(json.dumps(told))


def _told(one: Digest) -> dict[str, Any]:
    return {
        "least": one.least,
        "most": one.most,
        "last": one.last,
        "steps": list(one.steps),
        "values": list(one.values),
    }


def _digest(told: Mapping[str, Any]) -> Digest:
    return Digest(
        least=told["least"],
        most=told["most"],
        last=told["last"],
        steps=array("d", told["steps"]),
        values=array("d", told["values"]),
    )
