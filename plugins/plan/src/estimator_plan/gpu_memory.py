"""The bytes that GPUs hold of a program that was compiled for CPUs, without the arrays that GPUs do not store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from estimator_plan.collectives import KINDS
from estimator_plan.hlo import Instruction, Module
from estimator_plan.liveness import Lifetimes, fused, indices_of_scatter, lifetimes, written_in_place

_CONSTANT = frozenset({"iota", "broadcast"})
_LAYOUT = frozenset({"copy", "transpose"})
_CONVERSION = frozenset({"convert"})
_INDICES = frozenset({"concatenate", "iota", "broadcast"})
#: The attribute that names the computation of a loop or a call.
_BODY = {"while": "body", "call": "to_apply"}
#: Operations without work of their own.
_FREE = ("parameter", "constant", "bitcast", "partition-id")
#: Operations that compute a value that they read as a part of their own work. Products, exchanges and loops need it
#: stored.
_READS_A_VALUE = (
    *("reduce", "select", "add", "multiply", "compare", "concatenate", "pad", "slice", "copy", "transpose"),
    *("reduce-window", "convert", "fusion"),
)
#: Opcodes whose arrays are stored elsewhere, and loops, whose arrays belong to their bodies.
_NO_ARRAY = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "conditional", "call")


def more_than_processors(module: Module) -> int:
    """Returns the difference between the largest bytes on GPUs and on CPUs. It is negative if GPUs hold less.

    - GPUs compute constants, ranges and conversions again in each operation that reads them.
    - Their products read an array in any layout, so no copy is made for a layout.
    - Their scatters compute indices that are made of ranges and an array, and hold that array.
    - They keep a part of a sum if only parts of the sum are read.
    - They order, pad and transpose differently, so the largest array that other operations than products read counts
    twice. An exchange may overlap with operations that are independent of it. The larger of both counts.
    """
    return _most(module, module.entry, _Cards(module=module, extra=largest_array(module))) - _most(module, module.entry)


def largest_array(module: Module) -> int:
    """Returns the bytes of the largest array that an operation stores in its own layout, without stacks of a loop."""
    largest = 0
    for name in dict.fromkeys(name for name, _ in module.executions()):
        users, parts = _users(module, name), parts_kept(module, name)
        gone = not_stored(module, name)
        for each in module.computations[name].values():
            if each.opcode in _NO_ARRAY or each.name in gone or _for_products(module, each, users, gone):
                continue
            inside = fused(module, each)
            constant = any(part.root and part.opcode == "broadcast" for part in (each, *inside))
            if not constant and not any(part.opcode == "dynamic-update-slice" for part in (each, *inside)):
                sizes = (array.bytes for array in each.arrays)
                largest = max([largest, *(min(size, parts.get(each.name, size)) for size in sizes)])
    return largest


def not_stored(module: Module, computation: str) -> frozenset[str]:
    """Returns the names of the instructions whose results GPUs do not store."""
    users = _users(module, computation)
    return frozenset(
        each.name
        for each in module.computations[computation].values()
        if _computed_again(module, each, users.get(each.name, []))
        or _copied_for_products(module, each, users)
        or _indices_alone(module, each, users)
    )


def parts_kept(module: Module, computation: str) -> dict[str, int]:
    """Returns the bytes of the largest part for each sum of which only parts are read."""
    users = _users(module, computation)
    found: dict[str, int] = {}
    for each in module.computations[computation].values():
        if each.opcode == "all-reduce" and len(each.arrays) == 1 and each.name in users:
            sizes = [_part_read(module, user, each.name) for user in users[each.name]]
            if None not in sizes:
                found[each.name] = max(size for size in sizes if size is not None)
    return found


@dataclass(frozen=True, kw_only=True)
class _Cards:
    """The memory of a program on GPUs.

    Attributes:
        module: the program.
        extra: the bytes that GPUs may hold in addition at any moment.
    """

    module: Module
    extra: int

    def adapt(self, computation: str, held: Lifetimes) -> None:
        """Removes the arrays that are not stored, and shortens the sums of which only parts are read."""
        gone = not_stored(self.module, computation)
        for each in reversed(held.instructions):
            if each.name in gone and not _operations(self.module, each) <= _CONVERSION:
                until = max((held.last[place] for place in held.of(each.name)), default=0)
                for place in (place for name in each.operands for place in held.of(name)):
                    held.last[place] = max(held.last[place], until)
        parts = parts_kept(self.module, computation)
        for place in list(held.sizes):
            if place[0] in gone:
                del held.sizes[place]
            elif place[0] in parts:
                held.sizes[place] = min(held.sizes[place], parts[place[0]])

    def beside(self, computation: str, held: Lifetimes) -> Iterator[int]:
        """Yields the additional bytes at each moment: those of an exchange in progress, or `extra`.

        If the result of the exchange is held at that moment anyway, only its operands are held longer.
        """
        parts, places = parts_kept(self.module, computation), dict[str, int]()
        before = list[int]()  # for each instruction, the bit set of the instructions it depends on
        for position, each in enumerate(held.instructions):
            seen = 0
            for name in each.operands:
                if name in places:
                    seen |= before[places[name]] | 1 << places[name]
            before.append(seen)
            places[each.name] = position
        exchanges = [
            (places[each.name], min(sum(array.bytes for array in each.arrays), parts.get(each.name, 1 << 62)), each)
            for each in held.instructions
            if each.opcode in KINDS
        ]
        for position in range(len(held.instructions)):
            free = (
                held.absent(position, each.operands) if held.holds(position, each.name) else size
                for at, size, each in exchanges
                if at != position and not before[at] >> position & 1 and not before[position] >> at & 1
            )
            yield max(self.extra, *free, 0)


def _most(module: Module, computation: str, cards: _Cards | None = None) -> int:
    """Returns the most bytes that are held at one moment, including those of the computations that run then."""
    held = lifetimes(module, computation)
    beside: Iterator[int] = iter([0] * len(held.instructions))
    if cards is not None:
        cards.adapt(computation, held)
        beside = cards.beside(computation, held)
    inner = None if cards is None else _Cards(module=module, extra=0)
    most = 0
    for each, now, more in zip(held.instructions, held.held(), beside, strict=True):
        key = _BODY.get(each.opcode)
        called = None if key is None else each.called(key)
        inside = 0 if called is None or called not in module.computations else _most(module, called, inner)
        most = max(most, now + more + inside)
    return most


def _computed_again(module: Module, each: Instruction, users: list[Instruction]) -> bool:
    work = _operations(module, each)
    if not users or not work or not (work <= _CONSTANT or work == _CONVERSION):
        return False
    return all(
        user.opcode in _READS_A_VALUE
        and not user.root
        and not _feeds_product(module, user, each.name)
        and written_in_place(module, user) != each.name
        for user in users
    )


def _feeds_product(module: Module, user: Instruction, name: str) -> bool:
    """Returns whether a fusion computes a product from an operand, and does not only combine it with a product."""
    inside = fused(module, user)
    fed = {part.name for part in inside if part.opcode == "parameter" and user.operands[part.constant or 0] == name}
    for part in inside:
        if not fed.isdisjoint(part.operands):
            fed.add(part.name)
            if _has_work(module, part):
                return True
    return False


def _copied_for_products(module: Module, each: Instruction, users: Mapping[str, list[Instruction]]) -> bool:
    work, reads = _operations(module, each), users.get(each.name, [])
    return bool(work) and work <= _LAYOUT and bool(reads) and all(_is_product(module, user) for user in reads)


def _indices_alone(module: Module, each: Instruction, users: Mapping[str, list[Instruction]]) -> bool:
    """Returns whether an array is made of ranges and another array, and is used only as indices of scatters."""
    work, reads = _operations(module, each), users.get(each.name, [])
    return (
        "concatenate" in work
        and work <= _INDICES
        and bool(reads)
        and all(indices_of_scatter(module, user) == each.name for user in reads)
    )


def _for_products(
    module: Module, each: Instruction, users: Mapping[str, list[Instruction]], gone: frozenset[str]
) -> bool:
    """Returns whether only products and exchanges read an array, because they accept any layout."""
    reads = users.get(each.name, [])
    return bool(reads) and all(
        user.opcode in KINDS
        or _is_product(module, user)
        or ((user.name in gone or user.opcode == "bitcast") and _for_products(module, user, users, gone))
        for user in reads
    )


def _is_product(module: Module, each: Instruction) -> bool:
    return each.opcode == "dot" or any(part.opcode == "dot" for part in fused(module, each))


def _part_read(module: Module, user: Instruction, name: str) -> int | None:
    """Returns the bytes of the part that an instruction reads of an array, or None if it reads the whole array."""
    if user.opcode == "dynamic-slice":
        return user.arrays[0].bytes
    inside = fused(module, user)
    same = {part.name for part in inside if part.opcode == "parameter" and user.operands[part.constant or 0] == name}
    sizes: list[int] = []
    for part in inside:
        if same.isdisjoint(part.operands):
            continue
        if part.opcode in ("bitcast", "copy", "reshape", "transpose"):
            same.add(part.name)
        elif part.opcode == "dynamic-slice":
            sizes.append(part.arrays[0].bytes)
        else:
            return None
    return max(sizes, default=None)


def _operations(module: Module, each: Instruction) -> frozenset[str]:
    """Returns the opcodes of an instruction that do work."""
    return frozenset(part.opcode for part in fused(module, each) or (each,) if part.opcode not in _FREE)


def _has(module: Module, each: Instruction, *opcodes: str) -> bool:
    inside = fused(module, each)
    return any(part.opcode in opcodes or _has(module, part, *opcodes) for part in inside)


def between_products(module: Module, computation: str) -> frozenset[str]:
    """Returns the instructions that depend on a product or loop of their computation, and on which another depends."""
    inside = list(module.computations[computation].values())
    works = {each.name for each in inside if each.opcode in _BODY or _has_work(module, each)}
    after, before = set[str](), set[str]()
    for each in inside:
        if not works.union(after).isdisjoint(each.operands):
            after.add(each.name)
    for each in reversed(inside):
        if each.name in works or each.name in before:
            before.update(each.operands)
    return frozenset(after & before)


def _has_work(module: Module, each: Instruction) -> bool:
    return each.opcode in ("dot", "convolution") or _has(module, each, "dot", "convolution")


def _users(module: Module, computation: str) -> dict[str, list[Instruction]]:
    found: dict[str, list[Instruction]] = {}
    for each in module.computations[computation].values():
        for name in dict.fromkeys(each.operands):
            found.setdefault(name, []).append(each)
    return found


def has_product(module: Module) -> bool:
    """Returns whether the program computes a product of matrices, for which a library takes a workspace."""
    return any(each.opcode == "dot" for computation in module.computations.values() for each in computation.values())
