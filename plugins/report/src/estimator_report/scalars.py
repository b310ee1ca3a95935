"""Reads scalars from event files without TensorBoard."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path


def read_scalars(directory: Path) -> dict[str, list[tuple[int, float]]]:
    """Returns the scalars of the event files of a directory: points `(step, value)` by tag, in the order of the steps.

    A file with an incomplete last record is read up to that record. Of two values of a step, the later one counts.

    Args:
        directory: the directory that directly holds the event files.

    Example:
        >>> read_scalars(Path("no/such/directory"))
        {}
    """
    found: dict[str, dict[int, float]] = {}
    for path in sorted(directory.glob("events.out.tfevents.*")):
        for record in _records(path):
            for tag, step, value in _scalars(record):
                found.setdefault(tag, {})[step] = value
    return {tag: sorted(points.items()) for tag, points in sorted(found.items())}


def _records(path: Path) -> Iterator[bytes]:
    """Yields each record. A record has its length, a checksum of the length, the bytes, and a checksum of the bytes."""
    with path.open("rb") as file:
        while len(head := file.read(12)) == 12:
            (length,) = struct.unpack("<Q", head[:8])
            if length > path.stat().st_size:
                return
            record = file.read(length)
            if len(record) < length or len(file.read(4)) < 4:
                return
            yield record


def _scalars(record: bytes) -> Iterator[tuple[str, int, float]]:
    from google.protobuf.message import DecodeError
    from tensorboardX.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf

    event = Event()
    try:
        event.ParseFromString(record)
    except DecodeError:
        return
    for value in event.summary.value:
        if value.WhichOneof("value") == "simple_value":
            yield value.tag, int(event.step), float(value.simple_value)
