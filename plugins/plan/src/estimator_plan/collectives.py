"""The collectives of a compiled program: the bytes they move, between how many devices, and how often."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from estimator_plan.hlo import Instruction, Module
from estimator_plan.layout import Layout

KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
)


@dataclass(frozen=True, kw_only=True)
class Collective:
    """Collectives of one kind over groups of one size, of one training step.

    Attributes:
        kind: one of `KINDS`.
        group_size: the number of devices that take part in each collective.
        axes: the axes of the mesh along which those devices lie.
        crosses_groups: whether only the network joins some of these devices (see `DeviceFigures.group_size` and
            `Topology.slice_count`).
        count: the number of executions in a step, including loops.
        payload_bytes: the bytes per device in a step, for the whole array that is reduced, gathered, scattered or
            exchanged.
        sent_bytes: the bytes that each device sends for it in a step, with the ring algorithm.
    """

    kind: str
    group_size: int
    axes: tuple[str, ...]
    crosses_groups: bool
    count: int
    payload_bytes: int
    sent_bytes: int


def find_collectives(module: Module, layout: Layout) -> tuple[Collective, ...]:
    """Returns all collectives of a program, the costliest first.

    Args:
        module: the compiled program.
        layout: the layout of its devices.
    """
    totals: dict[tuple[str, int, tuple[str, ...], bool], list[int]] = {}
    slices, network = layout.across()
    numbered = module.device_count or len(layout.joined)
    for instruction, kind, payload, times in _all(module, numbered):
        if instruction.opcode == "send":
            size, axes, crosses = 2 if kind == "collective-permute" else slices, network, True
            payload *= slices if kind == "all-gather" else 1
        else:
            groups = layout.of_mesh(replica_groups(instruction.attributes, numbered), numbered)
            size = max((len(group) for group in groups), default=1)
            axes, crosses = layout.spanned(groups), layout.crosses(groups)
        if size == 1:
            continue
        total = totals.setdefault((kind, size, axes, crosses), [0, 0, 0])
        total[0] += times
        total[1] += times * payload
        total[2] += times * sent_by_ring(kind, payload, size)
    found = (
        Collective(
            kind=kind,
            group_size=size,
            axes=axes,
            crosses_groups=crosses,
            count=count,
            payload_bytes=payload,
            sent_bytes=sent,
        )
        for (kind, size, axes, crosses), (count, payload, sent) in totals.items()
    )
    return tuple(sorted(found, key=lambda each: (-each.sent_bytes, each.kind, each.group_size, each.axes)))


def sent_by_ring(kind: str, payload: int, size: int) -> int:
    """Returns the bytes that each of `size` devices sends.

    Example:
        >>> sent_by_ring("all-reduce", 800, 8), sent_by_ring("all-gather", 800, 8)
        (1400, 700)
    """
    if kind == "collective-permute":
        return payload
    passes = 2 if kind == "all-reduce" else 1
    return passes * payload * (size - 1) // size


def replica_groups(attributes: str, device_count: int) -> list[list[int]]:
    """Returns the groups of devices that exchange data with each other, from any of the notations of XLA.

    Example:
        >>> replica_groups("replica_groups={{0,1},{2,3}}", 4)
        [[0, 1], [2, 3]]
        >>> replica_groups("replica_groups=[2,2]<=[2,2]T(1,0)", 4)
        [[0, 2], [1, 3]]
        >>> replica_groups("replica_groups=mesh['a'=2,'b'=2] {'b'}", 4)
        [[0, 1], [2, 3]]
        >>> replica_groups("replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}", 4)
        [[0, 2], [1, 3]]
        >>> replica_groups("source_target_pairs={{0,1},{1,0}}", 2)
        [[0, 1], [1, 0]]
    """
    listed = re.search(r"(?:replica_groups|source_target_pairs)=\{(\{[\d,]*\}(?:,\{[\d,]*\})*)\}", attributes)
    if listed:
        return [[int(item) for item in group.split(",") if item] for group in re.findall(r"\{([\d,]*)\}", listed[1])]
    iota = re.search(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", attributes)
    if iota:
        shape = [int(size) for size in iota[3].split(",")]
        devices = np.arange(math.prod(shape)).reshape(shape)
        if iota[4]:
            devices = devices.transpose([int(axis) for axis in iota[4].split(",")])
        return devices.reshape(int(iota[1]), int(iota[2])).tolist()
    mesh = re.search(r"replica_groups=mesh\[([^\]]*)\](?:,\s*device_ids=\(([^{]*)\))?\s*\{([^}]*)\}", attributes)
    if mesh:
        sizes = {name: int(size) for name, size in re.findall(r"'([^']*)'=(\d+)", mesh[1])}
        axes = re.findall(r"'([^']*)'", mesh[3])
        devices = _listed_devices(mesh[2], device_count)
        if set(axes) <= set(sizes) and ":" not in mesh[3] and devices is not None:
            return [[devices[place] for place in group] for group in groups_over(sizes, axes)]
    return [list(range(device_count))]


def groups_over(sizes: Mapping[str, int], axes: Sequence[str]) -> list[list[int]]:
    """Returns the groups of devices along some axes of a mesh.

    Example:
        >>> groups_over({"data": 2, "model": 2}, ["data"])
        [[0, 2], [1, 3]]
    """
    names = list(sizes)
    devices = np.arange(math.prod(sizes.values())).reshape(tuple(sizes.values()))
    moved = devices.transpose(
        [*(names.index(name) for name in names if name not in axes), *(names.index(name) for name in axes)]
    )
    return moved.reshape(-1, math.prod(sizes[name] for name in axes)).tolist()


def _listed_devices(text: str | None, device_count: int) -> list[int] | None:
    """Returns the devices of a mesh in its order: all, numbers, or a transposed range. None for other forms."""
    if text is None:
        return list(range(device_count))
    if re.fullmatch(r"[\d,\s]+", text):
        return [int(item) for item in text.split(",")]
    ranged = re.fullmatch(r"\[([\d,]+)\](?:T\(([\d,]+)\))?", text)
    if ranged is None:
        return None
    shape = [int(size) for size in ranged[1].split(",")]
    axes = [int(axis) for axis in ranged[2].split(",")] if ranged[2] else range(len(shape))
    return np.arange(math.prod(shape)).reshape(shape).transpose(axes).ravel().tolist()


def _all(module: Module, device_count: int) -> Iterator[tuple[Instruction, str, int, int]]:
    """Yields every collective with its kind, its payload in bytes and its number of executions."""
    for computation, times in module.executions():
        started: set[tuple[str, str]] = set()
        for place in (computation, *module.fused(computation)):
            instructions = module.computations[place]
            for instruction in instructions.values():
                kind = _kind(instruction)
                if kind is None:
                    if sent := _between_slices(instruction):
                        module.notes.setdefault(f"the data that hosts send between slices as {sent} is not counted")
                    continue
                chain = _chain(instruction)
                if chain in started:
                    continue
                if chain is not None:
                    started.add(chain)
                read = sum(
                    array.bytes
                    for name in instruction.operands
                    if name in instructions
                    for array in instructions[name].arrays
                )
                if kind == "all-gather" and instruction.opcode != "send":
                    groups = replica_groups(instruction.attributes, device_count)
                    read *= max((len(group) for group in groups), default=1)
                if kind == "all-reduce" and place != computation and _is_scattered(instructions, instruction):
                    kind = "reduce-scatter"
                yield instruction, kind, read, times


def _chain(instruction: Instruction) -> tuple[str, str] | None:
    """Returns the chain whose link an instruction is, or None.

    An asynchronous collective of a TPU is spread over several fusions, as links of one chain. Collectives that a
    program contains itself (`shard_map`) may share one channel.
    """
    channel = re.search(r"channel_id=(\d+)", instruction.attributes)
    chain = re.search(r'chain_id="(\d+)"', instruction.attributes)
    return (channel[1], chain[1]) if channel and chain else None


def _kind(instruction: Instruction) -> str | None:
    """Returns the kind of an instruction, one of `KINDS`. Between TPU slices, the host sends the data of a device."""
    sent = _between_slices(instruction)
    kind = instruction.opcode.removesuffix("-start") if sent is None else sent.lower().replace("_", "-")
    kind = "collective-permute" if kind == "one-to-one" else kind
    return kind if kind in KINDS else None


def _between_slices(instruction: Instruction) -> str | None:
    """Returns libtpu's name of a transfer by a host to another slice, such as "ONE_TO_ONE", or None otherwise."""
    found = re.search(r'_xla_megascale_transfer_type="(\w+)"', instruction.attributes)
    return found[1] if found and instruction.opcode == "send" else None


def _is_scattered(instructions: Mapping[str, Instruction], reduced: Instruction) -> bool:
    """Returns whether each device keeps only its part: a TPU has a fused all-reduce and slice as a reduce-scatter."""
    users = [each for each in instructions.values() if reduced.name in each.operands]
    return bool(users) and all(user.opcode == "dynamic-slice" for user in users)
