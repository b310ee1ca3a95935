"""Tests that read a pack as docs/checkpoints.md describes it, with only the standard library and numpy."""

import hashlib
import json
import struct
import zlib
from pathlib import Path

import numpy as np

FROZEN = Path(__file__).parents[1] / "checkpoint" / "frozen" / "format_3"


def test_a_frozen_pack_is_what_the_page_says() -> None:
    rows: dict[int, np.ndarray] = {}
    for entry in json.loads((FROZEN / "manifest.json").read_text())["packs"]:
        pack = (FROZEN / entry["name"]).read_bytes()
        assert len(pack) == entry["bytes"]
        assert hashlib.sha256(pack[-entry["index"] :]).hexdigest() == entry["sha256"]
        magic, begin, length, crc = struct.unpack("<8sQQI4x", pack[-32:])
        index = pack[begin : begin + length]
        assert (magic, crc, begin + length + 32) == (b"ECPACK01", zlib.crc32(index), len(pack))
        head, *pieces = map(json.loads, index.splitlines())
        assert head == {"pack": 1, "pieces": len(pieces)}
        ends = [*(piece["offset"] for piece in pieces[1:]), begin]
        for piece, end in zip(pieces, ends, strict=True):
            assert piece["offset"] % 64 == 0
            assert piece["crc32"] == [f"{zlib.crc32(pack[piece['offset'] : end]):08x}"]
            if piece["path"] == "dense/kernel" and piece["item"] == "variables":
                (first, last), columns = piece["place"]
                assert columns == [0, 3]
                assert last - first == 1
                rows[first] = np.frombuffer(pack, piece["dtype"], 3, piece["offset"])
    assert [rows[row].tolist() for row in (0, 1)] == [[0, 0.25, 0.5], [0.75, 1, 1.25]]
