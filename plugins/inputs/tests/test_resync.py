"""Tests of a TFRecord with a damaged length. If bad rows are skipped, reading continues with the next whole record."""

import gzip
import logging
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_core import export
from estimator_core.errors import InputError
from estimator_inputs import learn_schema, read_tfrecord, tfrecord_input_fn, write_tfrecord
from estimator_inputs.tfrecord.checksums import masked_crc32c
from plugins.inputs.tests.written import example

SPEC = {"id": export.FixedLenFeature((), "int64"), "word": export.FixedLenFeature((), "string")}
COUNT = 60


def records() -> list[bytes]:
    return [example({"id": n, "word": b"w" * (7 * n % 50)}) for n in range(COUNT)]


def frame(record: bytes) -> bytes:
    length = len(record).to_bytes(8, "little")
    head = length + masked_crc32c(length).to_bytes(4, "little")
    return head + record + masked_crc32c(record).to_bytes(4, "little")


def source(path: Path, **options: Any) -> Any:
    return tfrecord_input_fn(path, 7, SPEC, **{"shuffle": False, "on_error": "skip", **options})


def read(path: Path, **options: Any) -> tuple[list[int], int]:
    iterator = source(path, **options)()
    return [number for batch in iterator for number in batch["id"].tolist()], iterator.bad_rows


def without(*lost: int) -> list[int]:
    return [number for number in range(COUNT) if number not in lost]


def damaged(*at: int) -> tuple[bytes, list[int]]:
    """A file with one wrong bit in the lengths of some records, and the place at which each record begins."""
    frames = [frame(record) for record in records()]
    begins = np.cumsum([0, *map(len, frames)]).tolist()
    data = bytearray(b"".join(frames))
    for number in at:
        data[begins[number] + number % 8] ^= 1 << (number % 8)
    return bytes(data), begins


@pytest.mark.parametrize("block_bytes", [64, 500, 1 << 19])
@pytest.mark.parametrize("at", [0, 1, 31, COUNT - 2, COUNT - 1])
def test_one_record_is_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture, at: int, block_bytes: int) -> None:
    path = tmp_path / "rows.tfrecord"
    data, begins = damaged(at)
    path.write_bytes(data)
    with caplog.at_level(logging.WARNING, logger="estimator_inputs"):
        assert read(path, block_bytes=block_bytes) == (without(at), 1)
    behind = "the beginning of the next complete record" if at < COUNT - 1 else "the end of the file"
    assert caplog.messages[0] == (
        f"Skipped {path}, record {at}: the checksum of its length is wrong: bytes {begins[at]} to {begins[at + 1]} are "
        f"left out, up to {behind}."
    )
    with pytest.raises(InputError, match=f"record {at}: the checksum of its length is wrong, so nothing after it can"):
        list(source(path, on_error="raise", block_bytes=block_bytes)())


def test_several_in_a_row_and_apart(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    path.write_bytes(damaged(3, 17, 18, 40)[0])
    for block_bytes in (64, 300, 1 << 19):
        assert read(path, block_bytes=block_bytes) == (without(3, 17, 18, 40), 3)  # neighbouring records are one gap


@pytest.mark.parametrize("strange", [b"\0" * 3000, np.random.default_rng(0).bytes(40_000), b"\x01", b"\xff" * 11])
@pytest.mark.parametrize("block_bytes", [100, 1 << 19])
def test_strange_bytes_between_records(tmp_path: Path, strange: bytes, block_bytes: int) -> None:
    path = tmp_path / "rows.tfrecord"
    frames = [frame(record) for record in records()]
    path.write_bytes(b"".join([*frames[:20], strange, *frames[20:]]))
    assert read(path, block_bytes=block_bytes) == (without(), 1)


def test_a_record_that_is_damaged_too_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    data, begins = damaged(20)
    path.write_bytes(data[: begins[21] + 14] + b"\x7f" + data[begins[21] + 15 :])
    assert read(path) == (without(20, 21), 1)


def test_a_truncated_file_behind_a_damaged_length(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    data, begins = damaged(50)
    path.write_bytes(data[: begins[51] + 20])
    assert read(path) == (list(range(50)), 1)
    path.write_bytes(data[: begins[52] + 20])
    assert read(path) == ([*range(50), 51], 2)


def test_every_position_is_returned_to(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    data, begins = damaged(11, 35)
    path.write_bytes(data[: begins[-1] - 5])
    for shuffle in (False, True):
        make = source(path, block_bytes=200, shuffle=shuffle, shuffle_buffer_size=13, num_epochs=2)
        whole = make()
        expected = [batch["id"].tolist() for batch in whole]
        assert sorted(number for batch in expected for number in batch) == sorted(2 * without(11, 35, COUNT - 1))
        for stop in range(1, len(expected)):
            first = make()
            for _ in range(stop):
                next(first)
            second = make()
            second.set_state(first.get_state())
            assert [batch["id"].tolist() for batch in second] == expected[stop:]
            assert second.bad_rows == whole.bad_rows == 6


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(("kind", "compress"), [("gzip", gzip.compress), ("zlib", zlib.compress)])
def test_a_compressed_file_without_a_suffix_is_never_one_bad_row(
    tmp_path: Path, kind: str, compress: Callable[[bytes], bytes], on_error: str
) -> None:
    write_tfrecord(tmp_path / "a.tfrecord", records())
    path = tmp_path / "b.tfrecord"
    path.write_bytes(compress((tmp_path / "a.tfrecord").read_bytes()))
    renamed = r", or add the suffix \.gz to its name" if kind == "gzip" else ""  # commands cannot set a compression
    told = rf"b\.tfrecord has the compression '{kind}', not 'none'\. Set compression='{kind}'{renamed}\.$"
    with pytest.raises(InputError, match=told):
        read(tmp_path / "*.tfrecord", on_error=on_error)
    with pytest.raises(InputError, match=told):
        list(read_tfrecord(path))
    with pytest.raises(InputError, match=told):
        learn_schema(path)
    assert read(path, compression=kind) == (without(), 0)


def test_statistics_of_a_file_with_a_damaged_first_length_begin_after_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    path.write_bytes(damaged(0)[0])
    assert learn_schema(path).feature("id").median == 30  # of 1 to 59
    path.write_bytes(b"this is no TFRecord")
    with pytest.raises(InputError, match=r"rows\.tfrecord, record 0: the checksum of its length is wrong"):
        learn_schema(path)


def test_zlib(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    write_tfrecord(path, records())
    plain = path.read_bytes()
    half = len(plain) // 2
    path.write_bytes(zlib.compress(plain))
    assert read(path, compression="zlib", block_bytes=500) == (without(), 0)
    path.write_bytes(zlib.compress(plain[:half], 0) + zlib.compress(plain[half:]))
    assert read(path, compression="zlib") == (without(), 0)
    iterator = source(path, compression="zlib", block_bytes=200)()
    first = [number for _ in range(3) for number in next(iterator)["id"].tolist()]
    resumed = source(path, compression="zlib", block_bytes=200)()
    resumed.set_state(iterator.get_state())
    assert first + [n for batch in resumed for n in batch["id"].tolist()] == without()
    for broken in (zlib.compress(plain)[:-3], b"", plain, zlib.compress(plain) + b"more"):
        path.write_bytes(broken)
        with pytest.raises(InputError, match=r"rows\.tfrecord cannot be read as zlib"):
            read(path, compression="zlib")
