"""Detects the kind of a file."""

from __future__ import annotations

from pathlib import Path

from estimator_core.errors import InputError
from estimator_inputs.reading.files import compression_of, opened
from estimator_inputs.tfrecord.checksums import masked_crc32c

_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
    ".array_record": "array_record",
    ".arrayrecord": "array_record",
}


def kind_of(path: Path, compression: str = "auto") -> str:
    """Returns the kind of a file, from its suffix, or from its first bytes if the suffix is unknown.

    Raises:
        InputError: the file is empty or cannot be read.
    """
    packed = compression_of(path, "auto") != "none"
    suffix = Path(path.stem).suffix if packed else path.suffix
    found = _BY_SUFFIX.get(suffix.lower())
    if found is not None:
        return found
    with opened(path, compression) as stream:
        head = stream.read(64)
    if not head:
        raise InputError(f"{path} is empty.")
    if head.startswith(b"PAR1"):
        return "parquet"
    if len(head) >= 12 and masked_crc32c(head[:8]).to_bytes(4, "little") == head[8:12]:
        return "tfrecord"
    text = head.lstrip()
    of_objects = text.startswith(b"[") and text[1:].lstrip().startswith(b"{")  # an array, which jsonl_input_fn refuses
    return "jsonl" if text.startswith(b"{") or of_objects else "csv"
