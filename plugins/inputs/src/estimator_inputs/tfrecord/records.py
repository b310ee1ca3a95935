"""Reads the records of a TFRecord file without decoding them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from estimator_core.errors import InputError
from estimator_inputs.reading.files import COMPRESSIONS, compression_of, opened, suffix_of
from estimator_inputs.tfrecord.checksums import HEAD, masked_crc32c, wrong_records
from estimator_inputs.tfrecord.framing import Frames, read_frames

_BLOCK = 1 << 19


def read_tfrecord(path: str | Path, *, compression: str = "auto") -> Iterator[bytes]:
    """Yields the records of a TFRecord file. One block of records is in memory.

    Args:
        path: the path of the file.
        compression: "auto" (by suffix), or another value of `ReadOptions`.

    Raises:
        InputError: while reading: a file cannot be read, or the checksum of a record is wrong. The message names file
            and record.

    Example:
        >>> import tempfile
        >>> from estimator_inputs import write_tfrecord
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = write_tfrecord(f"{folder}/two.tfrecord", [b"one", b"two"])
        ...     list(read_tfrecord(f"{folder}/two.tfrecord"))
        [b'one', b'two']

    Source: `tf.data.TFRecordDataset`.
    """
    for frames in frames_of(Path(os.path.expanduser(path)), compression, block_bytes=_BLOCK):
        wrong = wrong_records(frames.data, frames.begins, frames.sizes, frames.stored_checksums())
        good = int(wrong[0]) if len(wrong) else len(frames.begins)
        for begin, size in zip(frames.begins[:good].tolist(), frames.sizes[:good].tolist(), strict=True):
            yield frames.data[begin : begin + size]
        fault = "the checksum of the record is wrong" if good < len(frames.begins) else frames.fault
        if fault:
            raise InputError(f"{path}, record {frames.record + good}: {fault}.")


def frames_of(
    path: Path, compression: str, *, block_bytes: int, offset: int = 0, record: int = 0, resync: bool = False
) -> Iterator[Frames]:
    """Yields the pieces of a TFRecord file. The arguments are those of `read_frames`.

    Raises:
        InputError: the file cannot be read, or has another compression.
    """
    with opened(path, compression, offset) as stream:
        for frames in read_frames(stream, block_bytes=block_bytes, offset=offset, record=record, resync=resync):
            if frames.fault is not None and not frames.offset and not len(frames.begins):
                _refuse_other_compression(path, compression_of(path, compression))
            yield frames


def _refuse_other_compression(path: Path, tried: str) -> None:
    """Refuses a file that begins with a record in another compression. As one bad row, it would be skipped entirely."""
    for other in COMPRESSIONS:
        if other not in ("auto", tried) and _begins_with_a_record(path, other):
            named = suffix_of(other)
            renamed = f", or add the suffix {named} to its name" if named and tried == "none" else ""
            raise InputError(
                f"{path} has the compression {other!r}, not {tried!r}. Set compression={other!r}{renamed}."
            )


def _begins_with_a_record(path: Path, compression: str) -> bool:
    try:
        with opened(path, compression) as stream:
            head = stream.read(HEAD)
    except InputError:
        return False
    return len(head) == HEAD and masked_crc32c(head[:8]) == int.from_bytes(head[8:], "little")
