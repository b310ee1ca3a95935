"""The bytes that a scheduled program holds at each moment, according to its text. An array is held from the operation
that writes it to the last one that reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from estimator_plan.hlo import Instruction, Module

#: An array: the name of the instruction that writes it, and its index in the result.
Place = tuple[str, int]
_SAME = ("bitcast", "optimization-barrier")


@dataclass(kw_only=True)
class Lifetimes:
    """The arrays of one computation that are neither its arguments nor its results.

    Attributes:
        instructions: the instructions in the order in which they run.
        sizes: the bytes of each array.
        born, last: the positions of the instruction that writes an array, and of the last one that reads it.
        arrays: the arrays in the result of each instruction, by name.
    """

    instructions: Sequence[Instruction]
    sizes: dict[Place, int]
    born: dict[Place, int]
    last: dict[Place, int]
    arrays: Mapping[str, Sequence[frozenset[Place]]]

    def of(self, name: str) -> Iterator[Place]:
        """Yields all arrays in the result of an instruction."""
        for places in self.arrays.get(name, ()):
            yield from places

    def holds(self, position: int, name: str) -> bool:
        """Returns whether the result of an instruction is held at a moment."""
        return any(place in self.sizes and self.born[place] <= position <= self.last[place] for place in self.of(name))

    def absent(self, position: int, names: Sequence[str]) -> int:
        """Returns the bytes of results that are not held at a moment."""
        places = {place for name in names for place in self.of(name) if place in self.sizes}
        return sum(self.sizes[place] for place in places if not self.born[place] <= position <= self.last[place])

    def held(self) -> list[int]:
        """Returns the bytes at the moment of each instruction."""
        changes = [0] * (len(self.instructions) + 1)
        for place, size in self.sizes.items():
            changes[self.born[place]] += size
            changes[self.last[place] + 1] -= size
        held, now = list[int](), 0
        for change in changes[:-1]:
            now += change
            held.append(now)
        return held


def lifetimes(module: Module, computation: str) -> Lifetimes:
    """Returns the arrays of a computation. A stack that a loop writes in place is one array.

    Args:
        module: the compiled program. Its instructions are in the order in which they run.
        computation: the name of the computation.
    """
    instructions = list(module.computations[computation].values())
    arrays: dict[str, Sequence[frozenset[Place]]] = {}
    sizes, born, last = dict[Place, int](), dict[Place, int](), dict[Place, int]()
    for position, each in enumerate(instructions):
        for name in each.operands:
            for places in arrays.get(name, ()):
                last.update(dict.fromkeys(places, position))
        known = _known(module, each, arrays)
        if known is None:
            new = [(each.name, place) for place in range(len(each.arrays))]
            sizes.update({place: array.bytes for place, array in zip(new, each.arrays, strict=True)})
            born.update(dict.fromkeys(new, position))
            last.update(dict.fromkeys(new, position))
            known = [frozenset([place]) for place in new]
        arrays[each.name] = known
    root = next((each.name for each in instructions if each.root), "")
    for place in {place for places in arrays.get(root, ()) for place in places}:
        del sizes[place]
    return Lifetimes(instructions=instructions, sizes=sizes, born=born, last=last, arrays=arrays)


def _known(
    module: Module, each: Instruction, arrays: Mapping[str, Sequence[frozenset[Place]]]
) -> Sequence[frozenset[Place]] | None:
    """Returns the arrays in a result that consists of other arrays, or None if the instruction writes its own."""
    operands = [arrays.get(name, ()) for name in each.operands]
    if each.opcode in ("parameter", "constant"):
        return [frozenset() for _ in each.arrays]
    if each.opcode == "tuple":
        return [frozenset[Place]().union(*parts) for parts in operands]
    if each.opcode == "get-tuple-element":
        index = re.search(r"index=(\d+)", each.attributes)
        place = int(index[1]) if index else 0
        return [operands[0][place]] if operands and place < len(operands[0]) else [frozenset()]
    if each.opcode in (*_SAME, "while"):
        return operands[0] if operands else [frozenset()]
    written = written_in_place(module, each)
    if written is not None and arrays.get(written):
        return [arrays[written][0] for _ in each.arrays]
    return None


def written_in_place(module: Module, each: Instruction) -> str | None:
    """Returns the operand that an instruction overwrites: the stack of a loop, or the table of a scatter."""
    return _operand(module, each, 0, "dynamic-update-slice", "scatter")


def indices_of_scatter(module: Module, each: Instruction) -> str | None:
    """Returns the operand with the indices of a scatter, or None for any other instruction."""
    return _operand(module, each, 1, "scatter")


def _operand(module: Module, each: Instruction, place: int, *opcodes: str) -> str | None:
    """Returns an operand of an operation by its position. The operation may be the result of a fusion."""
    if each.opcode in opcodes:
        return each.operands[place]
    inside = fused(module, each)
    by_name = {part.name: part for part in inside}
    found = _source(by_name, next((part for part in inside if part.root), None))
    if found is None or found.opcode not in opcodes:
        return None
    base = _source(by_name, by_name.get(found.operands[place]))
    if base is None or base.opcode != "parameter" or base.constant is None:
        return None
    return each.operands[base.constant]


def fused(module: Module, each: Instruction) -> Sequence[Instruction]:
    """Returns the instructions inside a fusion, or none for any other instruction."""
    inside = module.computations.get(each.called("calls") or "") if each.opcode == "fusion" else None
    return () if inside is None else tuple(inside.values())


def _source(by_name: Mapping[str, Instruction], each: Instruction | None) -> Instruction | None:
    """Returns the instruction whose array another one passes on."""
    while each is not None and each.opcode in ("bitcast", "copy") and each.operands:
        each = by_name.get(each.operands[0])
    return each
