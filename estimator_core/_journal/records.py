"""One record of the journal as bytes: a line of JSON, and a line with its SHA-256."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from estimator_core._journal.entries import Entry, entry_from_json, entry_to_json
from estimator_core.errors import EstimatorError

FORMAT = 1
#: A record is small: whatever is larger is not one.
MOST_BYTES = 16 << 20
_MOST_ENTRIES = 100_000


class JournalError(EstimatorError, RuntimeError):
    """The journal of a model_dir is not as its writers wrote it."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is published at once.

    Args:
        epoch: of the writer.
        before: digest of the record before; "" for the first one.
        nonce: tells two records of equal contents apart.
        observer: who wrote it, if not the writer of the epoch; else "".
        entries: what happened, in order.
    """

    epoch: int
    before: str
    nonce: str
    observer: str = ""
    entries: Sequence[Entry]


def key_of(identity: str, number: int) -> str:
    """Where a record lies: below the identity, so that a run whose model_dir was replaced cannot write into another.

    Example:
        >>> key_of("0f3a", 7)
        'journal/0f3a/0000000007'
    """
    return f"journal/{identity}/{number:010d}"


def digest_of(data: bytes) -> str:
    """What the next record names as the one before."""
    return hashlib.sha256(data).hexdigest()


def encode(record: Record) -> bytes:
    """The bytes of a record.

    Raises:
        JournalError: it is too large to be read again.
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
    """The record of bytes.

    Args:
        data: what lies at the record's key.
        where: storage and key, for messages.

    Raises:
        JournalError: the bytes are torn or damaged, or a newer release wrote them.
    """
    line, _, rest = data.partition(b"\n")
    if len(data) > MOST_BYTES or rest != hashlib.sha256(line).hexdigest().encode() + b"\n":
        raise JournalError(f"{where} is torn or damaged: its checksum does not fit. Run `estimator audit` on it.")
    try:
        return _parsed(json.loads(line), where)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise JournalError(f"{where} is not a record of a journal: {error}.") from error


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
