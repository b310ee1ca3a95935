"""Reads the text of a compiled program: its computations, its instructions, and how often each computation runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_BITS = {
    "pred": 8,
    "bf16": 16,
    "token": 0,
    "opaque": 0,
    "s2": 2,
    "u2": 2,
    "s4": 4,
    "u4": 4,
    "c64": 64,
    "c128": 128,
    "f4e2m1fn": 4,
}
_HEADER = re.compile(r"^(?:ENTRY\s+)?%?([\w.\-]+)\s*\(.*->.*\{\s*$")
_INSTRUCTION = re.compile(r"^\s+(ROOT\s+)?%?([\w.\-]+)\s*=\s*(.*)$")
_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,<=]*)\](?:\{([^{}]*)\})?")
_OPERAND = re.compile(r"%([\w.\-]+(?:#\d+)?)")
_MEMORY_SPACE = re.compile(r"S\((\d+)\)")


@dataclass(frozen=True, kw_only=True)
class Array:
    """One array of the type of an instruction.

    Attributes:
        bytes: the size of its elements, without padding.
        in_memory: whether it is in the main memory of the device, and not in a scratch memory on the chip.
    """

    bytes: int
    in_memory: bool


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One line of a computation.

    Attributes:
        name: the name, unique in the program.
        opcode: the operation: "fusion", "all-reduce-start", ...
        arrays: the arrays of its result. A tuple has several.
        operands: the names of the instructions that it reads.
        attributes: the text after the operands.
        constant: the value of an integer constant, or the number of a parameter. Otherwise None.
        root: whether it is the result of the computation.
    """

    name: str
    opcode: str
    arrays: tuple[Array, ...]
    operands: tuple[str, ...]
    attributes: str
    constant: int | None
    root: bool

    def called(self, key: str) -> str | None:
        """Returns the computation named by an attribute such as `calls` or `body`, or None."""
        found = re.search(rf"\b{key}=%?([\w.\-]+)", self.attributes)
        return None if found is None else found.group(1)


@dataclass(kw_only=True)
class Module:
    """A compiled program.

    Attributes:
        computations: the instructions by name, by computation.
        entry: the computation that runs first.
        device_count: the number of devices in its numbering, or None if its text does not contain it.
        notes: the parts that could not be read, once each.
    """

    computations: Mapping[str, Mapping[str, Instruction]]
    entry: str
    device_count: int | None = None
    notes: dict[str, None] = field(default_factory=dict[str, None])

    def executions(self) -> Iterator[tuple[str, int]]:
        """Yields every computation that runs by itself, and how often: the entry, bodies of loops, branches, calls.

        Computations inside fusions and reductions belong to their instruction, and are left out.
        """
        yield from self._runs(self.entry, 1)

    def fused(self, computation: str) -> Iterator[str]:
        """Yields the computations that are fused into the instructions of one computation, at any depth."""
        for instruction in self.computations[computation].values():
            inner = instruction.called("calls") if instruction.opcode == "fusion" else None
            if inner is not None and inner in self.computations:
                yield inner
                yield from self.fused(inner)

    def _runs(self, computation: str, times: int) -> Iterator[tuple[str, int]]:
        yield computation, times
        for instruction in self.computations[computation].values():
            for inner, count in self._inner(instruction):
                if inner in self.computations:
                    yield from self._runs(inner, times * count)

    def _inner(self, instruction: Instruction) -> Iterator[tuple[str, int]]:
        if instruction.opcode == "while":
            trips = self._trips(instruction)
            yield instruction.called("body") or "", trips
            yield instruction.called("condition") or "", trips
        elif instruction.opcode == "conditional":
            branches = re.search(r"branch_computations=\{([^}]*)\}", instruction.attributes)
            names = _OPERAND.findall(branches.group(1)) if branches else []
            for name in [*names, *filter(None, map(instruction.called, ("true_computation", "false_computation")))]:
                yield name, 1
        elif instruction.opcode == "call":
            yield instruction.called("to_apply") or "", 1
        elif instruction.opcode == "async-start":
            yield instruction.called("calls") or "", 1

    def _trips(self, loop: Instruction) -> int:
        """Returns the trip count of a loop: that of the compiler, else the constant in its condition."""
        known = re.search(r'known_trip_count"?:\s*\{"n":"(\d+)"', loop.attributes)
        if known:
            return int(known.group(1))
        condition = self.computations.get(loop.called("condition") or "", {})
        root = next((each for each in condition.values() if each.root), None)
        if root is not None and root.opcode == "compare" and "direction=LT" in root.attributes:
            limits = [condition[name].constant for name in root.operands if name in condition]
            found = next((limit for limit in limits if limit is not None), None)
            if found is not None:
                return found
        self.notes.setdefault("a loop with a number of rounds that the compiler does not report is counted once")
        return 1


def read_module(text: str) -> Module:
    """Reads the text of `Compiled.as_text()`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> module = read_module(jax.jit(lambda x: x + 1).lower(jnp.ones(3)).compile().as_text())
        >>> [name for name, times in module.executions()] == [module.entry]
        True
    """
    computations: dict[str, dict[str, Instruction]] = {}
    current: dict[str, Instruction] | None = None
    entry = ""
    for line in text.splitlines():
        if current is None:
            header = _HEADER.match(line)
            if header:
                current = computations[header.group(1)] = {}
                entry = header.group(1) if line.startswith("ENTRY") else entry
        elif line.startswith("}"):
            current = None
        else:
            instruction = _read_instruction(line)
            if instruction is not None:
                for operand in instruction.operands:
                    if "#" in operand and operand not in current:
                        current[operand] = _element(operand, current)
                current[instruction.name] = instruction
    first = text[: text.find("\n")] if text.startswith("HloModule") else ""
    sizes = re.findall(r"\b(?:num_partitions|replica_count)=(\d+)", first)
    return Module(computations=computations, entry=entry, device_count=math.prod(map(int, sizes)) if sizes else None)


def _read_instruction(line: str) -> Instruction | None:
    matched = _INSTRUCTION.match(line)
    if matched is None:
        return None
    root, name, rest = matched.groups()
    end = _closing(rest, 0) if rest.startswith("(") else rest.find(" ")
    result, rest = rest[:end], rest[end:].lstrip()
    opening = rest.find("(")
    if opening < 0:
        return None
    closing = _closing(rest, opening)
    inside = rest[opening + 1 : closing - 1]
    opcode = rest[:opening]
    constant = int(inside) if opcode in ("constant", "parameter") and re.fullmatch(r"-?\d+", inside) else None
    return Instruction(
        name=name,
        opcode=opcode,
        arrays=tuple(_arrays(result)),
        operands=tuple(_OPERAND.findall(inside)),
        attributes=rest[closing:],
        constant=constant,
        root=root is not None,
    )


def _element(operand: str, computation: Mapping[str, Instruction]) -> Instruction:
    """Returns the separate instruction that older compilers write for `%tuple#2`, the form since jaxlib 0.12."""
    name, _, index = operand.partition("#")
    arrays = computation[name].arrays if name in computation else ()
    return Instruction(
        name=operand,
        opcode="get-tuple-element",
        arrays=arrays[int(index) : int(index) + 1],
        operands=(name,),
        attributes=f", index={index}",
        constant=None,
        root=False,
    )


def _closing(text: str, opening: int) -> int:
    """Returns the position after the bracket that closes the one at `opening`."""
    depth = 0
    for position in range(opening, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if depth == 0:
            return position + 1
    return len(text)


def _arrays(text: str) -> Iterator[Array]:
    for dtype, dims, layout in _ARRAY.findall(text):
        elements = math.prod(int(size.lstrip("<=")) for size in dims.split(",") if size)
        space = _MEMORY_SPACE.search(layout)
        yield Array(bytes=elements * _bits(dtype) // 8, in_memory=space is None or space.group(1) == "0")


def _bits(dtype: str) -> int:
    if dtype in _BITS:
        return _BITS[dtype]
    found = re.search(r"\d+", dtype)
    return int(found.group()) if found else 0
