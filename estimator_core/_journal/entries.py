"""The entries of a journal, which are the events of a model_dir, and records of entries as bytes.

A record is a line of JSON, followed by a line with its SHA-256.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from estimator_core.errors import EstimatorError

FORMAT = 1
#: The largest size of a record. Anything larger is not a record.
MOST_BYTES = 16 << 20
_MOST_ENTRIES = 100_000


@dataclass(frozen=True, kw_only=True)
class Took:
    """A run becomes the writer.

    Args:
        epoch: the epoch of the run, one more than that of the previous writer.
        writer: the identity of the writer, for readers of the journal: host, process, start.
        step: the step that the run continues from. Everything recorded after this step no longer counts.
        time: the Unix time, for readers of the journal. It does not determine an order.
    """

    epoch: int
    writer: str
    step: int
    time: float


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A checkpoint is complete.

    Args:
        step: the step of the checkpoint.
        place: the place of its data, relative to the root. No other checkpoint ever has this place.
        digest: the digest of its manifest, which contains the digests of everything else.
    """

    step: int
    place: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """An evaluation has a result.

    Args:
        name: the name of the evaluation; "" for the unnamed one.
        step: the step of the weights.
        metrics: the results, as JSON values.
        checkpoint: the path of the evaluated checkpoint, relative to the root if inside; "" for variables in memory.
        between: whether no checkpoint will ever contain the evaluated values.
        time: the Unix time, for readers of the journal.
    """

    name: str
    step: int
    metrics: Mapping[str, Any]
    checkpoint: str = ""
    between: bool = False
    time: float = 0.0

    @functools.cached_property
    def metrics_text(self) -> str:
        """The metrics as JSON, created once, because each call of a run compares all results with their files."""
        return json.dumps(self.metrics)


@dataclass(frozen=True, kw_only=True)
class Segment:
    """An event file is complete up to a byte. It may be recorded again, for a later step and with more bytes.

    Args:
        directory: the directory relative to the root; "" is the root.
        name: the name of the file.
        size: the number of bytes that count.
        step: the last step in these bytes.
    """

    directory: str
    name: str
    size: int
    step: int


@dataclass(frozen=True, kw_only=True)
class Exported:
    """An export is complete.

    Args:
        place: the path relative to the root.
        step: the step of the weights.
        digest: the digest of its manifest.
    """

    place: str
    step: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class Retired:
    """A checkpoint is no longer kept. Its data is removed once no process reads it."""

    place: str


@dataclass(frozen=True, kw_only=True)
class Removed:
    """The data of a retired checkpoint has been removed."""

    place: str


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The writer has ended without interruption.

    Args:
        step: the last step.
        reason: the reason why the writer ended.
        failed: whether the writer ended with an error.
    """

    step: int
    reason: str
    failed: bool


#: An entry of a record of the journal.
Entry: TypeAlias = Took | Saved | Evaluated | Segment | Exported | Retired | Removed | Ended
_KINDS: Mapping[str, type[Entry]] = {
    kind.__name__.lower(): kind for kind in (Took, Saved, Evaluated, Segment, Exported, Retired, Removed, Ended)
}
_TYPES = {kind: {field.name: str(field.type) for field in fields(kind)} for kind in _KINDS.values()}
_CHECKED = {"int": int, "str": str, "bool": bool, "float": (int, float), "Mapping[str, Any]": dict}


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """Returns the entry as JSON values.

    Example:
        >>> entry_to_json(Retired(place="checkpoints/5"))
        {'is': 'retired', 'place': 'checkpoints/5'}
    """
    values = {name: getattr(entry, name) for name in _TYPES[type(entry)]}
    return {"is": type(entry).__name__.lower(), **values}


def entry_from_json(value: object) -> Entry:
    """Returns the entry of JSON values.

    Raises:
        ValueError: the value is not an entry of this version.
    """
    if not isinstance(value, dict):
        raise ValueError("an entry is not an object")
    values: dict[str, Any] = dict(value)
    kind = _KINDS.get(str(values.pop("is", None)))
    if kind is None:
        raise ValueError(f"an entry of the unknown kind {value.get('is')!r}")
    types = _TYPES[kind]
    if types.keys() != values.keys():
        raise ValueError(f"an entry {kind.__name__} with the fields {sorted(values)}")
    for name, type_name in types.items():
        if not isinstance(values[name], _CHECKED[type_name]) or (type_name == "int" and values[name] is True):
            raise ValueError(f"an entry {kind.__name__} whose {name} is {values[name]!r}")
    return kind(**values)


class JournalError(EstimatorError, RuntimeError):
    """The journal of a model_dir was altered after it was written."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """Entries that are published together.

    Args:
        epoch: the epoch of the writer.
        before: the digest of the previous record; "" for the first one.
        nonce: a random text that distinguishes two records with equal contents.
        observer: the process that wrote the record, if it is not the writer of the epoch; otherwise "".
        entries: the entries, in order.
    """

    epoch: int
    before: str
    nonce: str
    observer: str = ""
    entries: Sequence[Entry]


def key_of(identity: str, number: int) -> str:
    """Returns the key of a record.

    It contains the identity, so a run never writes into another model_dir that replaced its own.

    Example:
        >>> key_of("0f3a", 7)
        'journal/0f3a/0000000007'
    """
    return f"journal/{identity}/{number:010d}"


def digest_of(data: bytes) -> str:
    """Returns the digest by which the next record names this one."""
    return hashlib.sha256(data).hexdigest()


def encode(record: Record) -> bytes:
    """Returns the bytes of a record.

    Raises:
        JournalError: the record is too large to be read again.
    """
    value = {
        "format": FORMAT,
        "epoch": record.epoch,
        "before": record.before,
        "nonce": record.nonce,
        "observer": record.observer,
        "entries": [entry_to_json(entry) for entry in record.entries],
    }
    line = json.dumps(value, separators=(",", ":")).encode()
    if len(line) > MOST_BYTES - 100 or len(record.entries) > _MOST_ENTRIES:
        raise JournalError(f"A record of {len(line)} bytes and {len(record.entries)} entries is too large.")
    return line + b"\n" + hashlib.sha256(line).hexdigest().encode() + b"\n"


def decode(data: bytes, where: str) -> Record:
    """Returns the record of these bytes.

    Args:
        data: the object with the key of the record.
        where: the storage and the key, for messages.

    Raises:
        JournalError: the bytes are torn or damaged, or a newer release wrote them.
    """
    line, _, rest = data.partition(b"\n")
    if len(data) > MOST_BYTES or rest != hashlib.sha256(line).hexdigest().encode() + b"\n":
        raise JournalError(f"{where} is torn or damaged: its checksum does not match. {remedy(where)}")
    try:
        return _parsed(json.loads(line), where)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise JournalError(f"{where} is not a record of a journal: {error}.") from error


def remedy(where: str) -> str:
    """Returns what to do about a damaged journal.

    Example:
        >>> remedy("s3://bucket/run/journal")
        'Restore it from a copy.'
    """
    away = " Without one, move `journal` and `snapshots` away: the next training imports the checkpoints."
    return f"Restore it from a copy.{'' if '://' in where else away}"


def _parsed(value: Any, where: str) -> Record:
    if value["format"] != FORMAT:
        raise JournalError(
            f"{where} has format {value['format']!r}; this release reads format {FORMAT}. Use the release that "
            "wrote it, or a newer one."
        )
    return Record(
        epoch=int(value["epoch"]),
        before=str(value["before"]),
        nonce=str(value["nonce"]),
        observer=str(value["observer"]),
        entries=tuple(entry_from_json(entry) for entry in value["entries"]),
    )
