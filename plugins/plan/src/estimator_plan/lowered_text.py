"""Rewrites a lowered program as the GPU compiler does before it divides the work, or as CPUs store it."""

from __future__ import annotations

import re

_OUTER = re.compile(
    r"(?P<name>%\w+) = stablehlo\.dot_general (?P<left>%[\w#]+), (?P<right>%[\w#]+),"
    r"(?: batching_dims = \[(?P<left_batch>[\d, ]*)\] x \[(?P<right_batch>[\d, ]*)\],)? contracting_dims = \[\] x \[\]"
    r"[^:\n]*: \(tensor<(?P<left_type>[^>]*)>, tensor<(?P<right_type>[^>]*)>\) -> tensor<(?P<type>[^>]*)>"
)


def in_float16(text: str) -> str:
    """Returns a lowered program with float16 instead of bfloat16.

    Example:
        >>> in_float16("%0 = stablehlo.convert %bf16 : (tensor<8xf32>) -> tensor<8xbf16>")
        '%0 = stablehlo.convert %bf16 : (tensor<8xf32>) -> tensor<8xf16>'
    """
    return re.sub(r"(?<=[<x])bf16(?=[>,])", "f16", text)


def with_multiplications(text: str) -> str:
    """Returns a lowered program in which products without a sum are multiplications.

    The GPU compiler does this before it divides the program among the GPUs, so it divides a different program.

    Example:
        >>> product = "%2 = stablehlo.dot_general %0, %1, contracting_dims = [] x []"
        >>> print(with_multiplications(f"{product} : (tensor<4xf32>, tensor<8xf32>) -> tensor<4x8xf32>"))
        %left2 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
        %right2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
        %2 = stablehlo.multiply %left2, %right2 : tensor<4x8xf32>
    """
    return _OUTER.sub(_multiplication, text)


def _multiplication(found: re.Match[str]) -> str:
    name, kind = found["name"][1:], found["type"]
    left_batch, right_batch = _numbers(found["left_batch"]), _numbers(found["right_batch"])
    left_rank, right_rank = found["left_type"].count("x"), found["right_type"].count("x")
    if {each.rpartition("x")[2] for each in (found["left_type"], found["right_type"], kind)} != {
        kind.rpartition("x")[2]
    }:
        return found[0]  # the product also converts
    left = _dims(left_rank, left_batch, len(left_batch))
    right = _dims(right_rank, right_batch, left_rank)
    return "\n".join(
        [
            f"%left{name} = stablehlo.broadcast_in_dim {found['left']}, dims = {left} "
            f": (tensor<{found['left_type']}>) -> tensor<{kind}>",
            f"%right{name} = stablehlo.broadcast_in_dim {found['right']}, dims = {right} "
            f": (tensor<{found['right_type']}>) -> tensor<{kind}>",
            f"%{name} = stablehlo.multiply %left{name}, %right{name} : tensor<{kind}>",
        ]
    )


def _dims(rank: int, batch: list[int], first: int) -> list[int]:
    """Returns the positions of an operand's axes in the result: batch axes first, its own axes from `first` on."""
    own = [axis for axis in range(rank) if axis not in batch]
    return [batch.index(axis) if axis in batch else first + own.index(axis) for axis in range(rank)]


def _numbers(text: str | None) -> list[int]:
    return [int(item) for item in (text or "").split(",") if item.strip()]
