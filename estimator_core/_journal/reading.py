"""Reads a journal: the newest snapshot, and every record after it.

A snapshot is the sum of the records before it. Every process would write the same one. Readers can skip these records.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from typing import Any

from estimator_core._journal.entries import (
    Ended,
    Evaluated,
    Exported,
    JournalError,
    Record,
    Saved,
    Segment,
    Took,
    decode,
    digest_of,
    entry_from_json,
    entry_to_json,
    key_of,
    remedy,
)
from estimator_core._journal.lineage import Lineage, add
from estimator_core._storage.contract import ObjectMissingError, Storage, StorageError, is_key
from estimator_core._storage.local import LocalStorage

FORMAT = 1
#: The number of records after which a snapshot is written, and after which a run that takes over writes one.
EVERY, EVERY_START = 64, 16
#: The number of snapshots that are kept. If the newest one is damaged, the one before it is read.
KEPT = 2
_FOLDER = "snapshots"
_MOST_BYTES = 64 << 20


def write_snapshot(storage: Storage, lineage: Lineage) -> None:
    """Stores the current sum, unless it exists already, and removes old ones. Without it, readers only read more
    records.
    """
    line = json.dumps(_to_json(lineage), separators=(",", ":")).encode()
    data = line + b"\n" + hashlib.sha256(line).hexdigest().encode() + b"\n"
    with contextlib.suppress(StorageError):  # the previous record exists, so its writer must not receive an error
        storage.put_new(key_of_snapshot(lineage), data)
        # A snapshot grows with the journal, so all of them together would grow with the square of its length.
        written = [entry.key for entry in storage.list(f"{_FOLDER}/{lineage.identity}")]
        storage.delete(written[:-KEPT])


def key_of_snapshot(lineage: Lineage) -> str:
    """Returns the key of the snapshot after this number of records."""
    return f"{_FOLDER}/{lineage.identity}/{lineage.number:010d}"


def newest_snapshot(storage: Storage, identity: str, key: str | None = None) -> Lineage:
    """Returns the sum in the newest intact snapshot; without a snapshot, the empty sum.

    Args:
        storage: the storage of the snapshots.
        identity: the identity of the model_dir.
        key: the key of the only snapshot to read. None: the newest intact one.
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
    """Reads a sum directly, without the checks of `add`."""
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
                file = entry.directory, entry.name
                lineage.marks[file] = (*lineage.marks.get(file, ()), entry)
            case Exported():
                lineage.exports[entry.place] = entry
            case Ended():
                lineage.ended = entry
            case _:
                raise ValueError(f"{entry} in a snapshot")
    return lineage


IDENTITY = "identity"
#: The last known sums of journals of this machine, by directory.
_read: dict[str, Lineage] = {}
_reading = threading.Lock()
_MOST_READ = 16


def read_lineage(storage: Storage, *, whole: bool = False) -> Lineage:
    """Returns the sum of a journal; without a journal, the empty sum.

    Args:
        storage: the storage of the journal.
        whole: whether to read every record instead of a snapshot, so that the whole chain is checked.

    Raises:
        JournalError: a record is damaged or does not follow the previous one, or the journal has lost its beginning.
        StorageError: the storage does not answer.

    Example:
        >>> import tempfile
        >>> from estimator_core._storage.local import LocalStorage
        >>> read_lineage(LocalStorage(tempfile.mkdtemp())).writer
        'nobody'
    """
    identity = identity_of(storage)
    if not identity:
        return Lineage()
    lineage = Lineage(identity=identity) if whole else newest_snapshot(storage, identity)
    if lineage.identity != identity:
        raise JournalError(f"{storage.url} holds parts of two model_dirs: its {IDENTITY} is not that of its journal.")
    if lineage.number >= 0 and not is_kept(storage, lineage):
        lineage = Lineage(identity=identity)  # the records of the snapshot were moved away
    refresh(storage, lineage)
    return lineage


def identity_of(storage: Storage) -> str:
    """Returns the identity of the model_dir; "" if no run has begun.

    Raises:
        JournalError: it is damaged, or only a journal is left.

    Example:
        >>> import tempfile
        >>> from estimator_core._storage.local import LocalStorage
        >>> identity_of(LocalStorage(tempfile.mkdtemp()))
        ''
    """
    for has_journal in (False, True):
        try:
            identity = storage.get(IDENTITY).decode("ascii", "replace")
        except ObjectMissingError:
            if not has_journal and next(storage.list("journal"), None) is None:
                return ""
            continue
        if is_key(key_of(identity, 0)):
            return identity
        raise JournalError(
            f"{storage.url}/{IDENTITY} is empty or damaged. Write the name of the folder in `journal` into it, without "
            "a line break. If there is none, remove it."
        )
    # The identity is created before the journal, and was read once more after the journal was found.
    raise JournalError(
        f"{storage.url} has a journal and no {IDENTITY}: a removal was interrupted, or a copy is incomplete. Remove "
        "the rest, or use another model_dir."
    )


def lineage_of(model_dir: str | os.PathLike[str]) -> Lineage | None:
    """Returns the current sum of the journal in a directory of this machine; None without a journal.

    Only new records since the last call in this process are read.

    Raises:
        JournalError, StorageError: see `read_lineage`.

    Example:
        >>> lineage_of("a/directory/that/does/not/exist") is None
        True
    """
    root = os.path.abspath(model_dir)
    if not (os.path.isfile(os.path.join(root, IDENTITY)) or os.path.isdir(os.path.join(root, "journal"))):
        return None
    storage = LocalStorage(root)
    with _reading:
        lineage = _read.pop(root, None)
        if lineage is None or not is_kept(storage, lineage):
            lineage = read_lineage(storage)
        else:
            refresh(storage, lineage)
        if lineage.number < 0:
            return None
        while len(_read) >= _MOST_READ:
            del _read[next(iter(_read))]
        _read[root] = lineage
        return lineage.copy()


def is_kept(storage: Storage, lineage: Lineage) -> bool:
    """Returns whether a journal still contains the records that were read."""
    try:
        identity, last = storage.get(IDENTITY), storage.get(key_of(lineage.identity, lineage.number))
    except ObjectMissingError:
        return False
    return identity.decode("ascii", "replace") == lineage.identity and digest_of(last) == lineage.head


def ended_since(storage: Storage, lineage: Lineage, step: int) -> bool | None:
    """Returns whether a run has ended successfully at a step since its checkpoint was recorded; None if this is
    unknown.

    The sum drops an end when the next run begins, so the records are read backwards.

    Args:
        storage: the storage of the journal.
        lineage: the sum of the journal.
        step: the step of the checkpoint.
    """
    saved = lineage.saved.get(step)
    if saved is None:
        return None
    for number in range(lineage.number, -1, -1):
        key = key_of(lineage.identity, number)
        try:
            record = decode(storage.get(key), f"{storage.url}/{key}")
        except ObjectMissingError:
            break
        for entry in reversed(record.entries):
            if isinstance(entry, Ended) and not entry.failed and entry.step == step:
                return True
            if isinstance(entry, Saved) and entry.place == saved.place:
                return False
    return None


def refresh(storage: Storage, lineage: Lineage) -> int:
    """Adds the records that have appeared since the last read.

    Args:
        storage: the storage of the journal.
        lineage: the sum, which is changed in place.

    Returns:
        The number of added records.

    Raises:
        JournalError: a record is damaged or does not follow the previous one.
    """
    return sum(1 for _ in records_after(storage, lineage))


def records_after(storage: Storage, lineage: Lineage) -> Iterator[Record]:
    """Adds the records that have appeared since, and yields each once it is added. Arguments and errors: `refresh`."""
    while True:
        key = key_of(lineage.identity, lineage.number + 1)
        try:
            data = storage.get(key)
        except ObjectMissingError:
            return
        where = f"{storage.url}/{key}"
        record = decode(data, where)
        try:
            add(lineage, record, digest_of(data))
        except JournalError as error:
            raise JournalError(f"{where}: {error} {remedy(where)}") from error
        yield record
