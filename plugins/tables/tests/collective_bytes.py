"""Counts the bytes that a device sends in a compiled program, from the text of the program."""

import math
import re

_SIZES = {"s32": 4, "f32": 4, "pred": 1, "u32": 4}


def sent_bytes(program: str, devices: int) -> dict[str, int]:
    """The bytes by kind of collective, with the ring algorithm. Each collective is counted once."""
    sent: dict[str, int] = {}
    for line in program.splitlines():
        found = re.search(r"= (.*?) (all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute)\(", line)
        if found is None:
            continue
        shapes = re.findall(r"(\w+)\[([\d,]*)\]", found[1])
        payload = sum(
            _SIZES[dtype] * math.prod(int(size) for size in sizes.split(",") if size) for dtype, sizes in shapes
        )
        passes = 2 if found[2] == "all-reduce" else 1
        sent[found[2]] = sent.get(found[2], 0) + passes * payload * (devices - 1) // devices
    return sent
