"""The bytes that a compiled program moves between a device and its memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from estimator_plan.hlo import Array, Instruction, Module

#: Opcodes without work: their results are their operands, or are counted where they are used.
_FREE = frozenset(
    (
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "conditional", "call"),
        *("after-all", "partition-id", "replica-id", "add-dependency", "opt-barrier", "async-done", "async-update"),
    )
)
_SLICES = ("dynamic-slice", "slice", "gather")
_UPDATES = ("dynamic-update-slice", "scatter")


def memory_traffic(module: Module) -> int:
    """Returns the bytes that one device reads and writes in one run, including loops.

    Every instruction reads its operands and writes its result once. A slice, or an update in place, touches only the
    slice. Arrays in scratch memory on the chip do not count, and caches are assumed to hold nothing between
    instructions.
    """
    return sum(
        times * sum(_of_instruction(instruction, module, computation) for instruction in instructions.values())
        for computation, times in module.executions()
        for instructions in (module.computations[computation],)
    )


def _of_instruction(instruction: Instruction, module: Module, computation: str) -> int:
    instructions = module.computations[computation]
    opcode = instruction.opcode
    if opcode in _FREE or opcode.endswith("-done") or "AllocateBuffer" in instruction.attributes:
        return 0
    operands = [instructions[name].arrays if name in instructions else () for name in instruction.operands]
    if opcode in _SLICES:
        return 2 * _in_memory(instruction.arrays)
    if opcode in _UPDATES:
        return 2 * _in_memory(operands[1] if len(operands) > 1 else ())
    if opcode == "fusion":
        inner = module.computations.get(instruction.called("calls") or "", {})
        return _of_fusion(instruction, operands, inner)
    written = instruction.arrays[-1:] if opcode.endswith("-start") else instruction.arrays
    return sum(_in_memory(arrays) for arrays in operands) + _in_memory(written)


def _of_fusion(fusion: Instruction, operands: Sequence[tuple[Array, ...]], inner: Mapping[str, Instruction]) -> int:
    updated = {each.operands[0] for each in inner.values() if each.opcode in _UPDATES and each.operands}
    total = 0
    parameters = [each for each in inner.values() if each.opcode == "parameter"]
    numbers = {each.name: index for index, each in enumerate(sorted(parameters, key=_number))}
    for parameter in parameters:
        index = numbers[parameter.name]
        whole = _in_memory(operands[index]) if index < len(operands) else 0
        users = [each for each in inner.values() if parameter.name in each.operands]
        if parameter.name in updated and all(each.opcode in _UPDATES for each in users):
            continue  # updated in place: the update is counted below
        if whole and users and all(each.opcode in _SLICES for each in users):
            whole = min(whole, sum(_bytes(each.arrays) for each in users))
        total += whole
    in_place = [
        inner[each.operands[1]].arrays
        for each in inner.values()
        if each.opcode in _UPDATES and len(each.operands) > 1 and each.operands[1] in inner
    ]
    if updated & set(numbers):
        rewritten = sum(_in_memory(operands[numbers[name]]) for name in updated if name in numbers)
        return total + max(_in_memory(fusion.arrays) - rewritten, 0) + sum(map(_bytes, in_place)) * (rewritten > 0)
    return total + _in_memory(fusion.arrays)


def _number(parameter: Instruction) -> int:
    return 0 if parameter.constant is None else parameter.constant


def _in_memory(arrays: Sequence[Array]) -> int:
    return sum(array.bytes for array in arrays if array.in_memory)


def _bytes(arrays: Sequence[Array]) -> int:
    return sum(array.bytes for array in arrays)
