"""Rewrites gathers and scatters with batching dimensions, which old StableHLO lacks, as ones that index the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo


def unbatched_gather(gather: Any) -> None:
    """Replaces a gather with batching dimensions by one without them."""
    numbers = stablehlo.GatherDimensionNumbers(gather.operation.attributes["dimension_numbers"])
    batching = list(numbers.operand_batching_dims)
    if not batching:
        return
    indices = gather.operation.operands[1]
    attributes = gather.operation.attributes
    with ir.InsertionPoint(gather):
        attributes["dimension_numbers"] = stablehlo.GatherDimensionNumbers.get(
            list(numbers.offset_dims),
            sorted([*numbers.collapsed_slice_dims, *batching]),
            [],
            [],
            [*batching, *numbers.start_index_map],
            numbers.index_vector_dim,
        )
        whole = _with_batch(indices, list(numbers.start_indices_batching_dims), numbers.index_vector_dim)
    attributes["indices_are_sorted"] = ir.BoolAttr.get(False)
    gather.operation.operands[1] = whole


def unbatched_scatter(scatter: Any) -> None:
    """Replaces a scatter with batching dimensions by one without them."""
    attributes = scatter.operation.attributes
    numbers = stablehlo.ScatterDimensionNumbers(attributes["scatter_dimension_numbers"])
    batching = list(numbers.input_batching_dims)
    if not batching:
        return
    place = len(scatter.operation.results)  # the number of arrays before the indices and after them
    indices = scatter.operation.operands[place]
    with ir.InsertionPoint(scatter):
        attributes["scatter_dimension_numbers"] = stablehlo.ScatterDimensionNumbers.get(
            list(numbers.update_window_dims),
            sorted([*numbers.inserted_window_dims, *batching]),
            [],
            [],
            [*batching, *numbers.scattered_dims_to_operand_dims],
            numbers.index_vector_dim,
        )
        whole = _with_batch(indices, list(numbers.scatter_indices_batching_dims), numbers.index_vector_dim)
    attributes["indices_are_sorted"] = ir.BoolAttr.get(False)
    scatter.operation.operands[place] = whole


def _with_batch(indices: Any, batching: Sequence[int], vector: int) -> Any:
    """Returns the indices, each preceded by its position in the batching dimensions."""
    known = ir.RankedTensorType(indices.type)
    if vector == known.rank:
        raise ValueError("a gather with batching dimensions whose indices are scalars")
    one = [1 if axis == vector else size for axis, size in enumerate(known.shape)]
    column = ir.RankedTensorType.get(one, known.element_type)
    places = [_iota(indices, column, axis, vector) for axis in batching]
    width = known.shape[vector] + len(places)
    whole = [width if axis == vector else size for axis, size in enumerate(known.shape)]
    kind = ir.RankedTensorType.get(whole, known.element_type)
    return stablehlo.ConcatenateOp([*places, indices], vector, results=[kind]).result


def _iota(indices: Any, column: Any, axis: int, vector: int) -> Any:
    if column.has_static_shape:
        return stablehlo.IotaOp(column, axis).result
    int32, scalar = ir.IntegerType.get_signless(32), ir.RankedTensorType.get([1], ir.IntegerType.get_signless(32))
    sizes: list[Any] = []
    for number in range(column.rank):
        if number == vector:
            fixed = ir.DenseElementsAttr.get_splat(scalar, ir.IntegerAttr.get(int32, 1))
            sizes.append(stablehlo.ConstantOp(fixed).result)
        else:
            size = stablehlo.GetDimensionSizeOp(indices, number).result
            sizes.append(stablehlo.ReshapeOp(scalar, size).result)
    shape = stablehlo.ConcatenateOp(sizes, 0).result
    return stablehlo.DynamicIotaOp(column, shape, axis).result
