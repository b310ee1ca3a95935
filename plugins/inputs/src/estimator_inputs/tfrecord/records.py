"""Reads the records of a TFRecord file without decoding them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from estimator_core.errors import InputError
from estimator_inputs.reading.files import opened
from estimator_inputs.tfrecord.checksums import wrong_records
from estimator_inputs.tfrecord.framing import read_frames

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
    with opened(Path(os.path.expanduser(path)), compression) as stream:
        for frames in read_frames(stream, block_bytes=_BLOCK):
            wrong = wrong_records(frames.data, frames.begins, frames.sizes, frames.stored_checksums())
            good = int(wrong[0]) if len(wrong) else len(frames.begins)
            for begin, size in zip(frames.begins[:good].tolist(), frames.sizes[:good].tolist(), strict=True):
                yield frames.data[begin : begin + size]
            fault = "the checksum of the record is wrong" if good < len(frames.begins) else frames.fault
            if fault:
                raise InputError(f"{path}, record {frames.record + good}: {fault}.")
