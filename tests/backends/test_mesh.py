"""Tests of meshes, which follow the links between devices: rings within a slice, one batch axis between slices. They
need no device.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from estimator_core._backends.partition import arranged, crossing_axes
from estimator_core._backends.placement import place


@dataclass(frozen=True)
class Chip:
    """The attributes that jax reports for a chip of a TPU slice."""

    id: int
    coords: tuple[int, int, int]
    slice_index: int
    process_index: int
    core_on_chip: int = 0
    platform: str = "tpu"
    device_kind: str = "TPU v5 lite"
    num_cores: None = None


def chips(width: int, height: int, slices: int = 1) -> list[Chip]:
    places = product(range(slices), range(height), range(width))
    return [Chip(i, (x, y, 0), piece, i // 4) for i, (piece, y, x) in enumerate(places)]


def hops(grid: np.ndarray, axis: int) -> list[int]:
    """Returns the links between neighbours along an axis, including the one from the last to the first."""
    rows = np.moveaxis(grid, axis, -1).reshape(-1, grid.shape[axis])
    pairs = [pair for row in rows for pair in zip(row, np.roll(row, -1), strict=True)]
    return [sum(abs(p - q) for p, q in zip(a.coords, b.coords, strict=True)) for a, b in pairs]


def test_neighbours_on_one_axis_are_neighbours_in_the_slice():
    assert set(hops(arranged(chips(4, 4), {"data": 16}).devices, 0)) == {1}
    plain = np.array(chips(4, 4), dtype=object)
    assert max(hops(plain, 0)) == 6


@pytest.mark.parametrize(
    ("sizes", "crosses"),
    [
        ({"data": 32}, ("data",)),
        ({"data": 2, "fsdp": 16}, ("data",)),
        ({"model": 4, "data": 8}, ("data",)),
        ({"fsdp": 2, "model": 16}, ("fsdp",)),
        ({"model": 32}, ("model",)),
        ({"data": 2, "stage": 2, "model": 8}, ("stage",)),
        ({"data": 2, "stage": 4, "model": 4}, ("stage",)),
    ],
)
def test_one_axis_crosses_the_network_and_it_is_one_of_stages_or_batches_where_there_is_one(sizes, crosses):
    mesh = arranged(chips(4, 4, slices=2), sizes)
    assert crossing_axes(mesh) == crosses
    assert dict(mesh.shape) == sizes
    assert len(set(mesh.devices.flat)) == 32


def test_the_log_says_which_axis_crosses_the_network():
    assert "Axis data crosses the network between slices." in place(chips(4, 4, slices=2), {"data": -1}, ()).describe(
        {}
    )
    assert "crosses" not in place(chips(4, 4), {"data": -1}, ()).describe({})


def test_a_part_of_the_devices_is_taken_in_their_order_where_slices_are_uneven():
    mesh = place(chips(2, 2, slices=2), {"data": 6}, ()).mesh
    assert [chip.id for chip in mesh.devices.flat] == list(range(6))


def test_other_devices_keep_their_order():
    devices = [Chip(i, (i, 0, 0), 0, 0, platform="gpu") for i in (3, 1, 2, 0)]
    assert [chip.id for chip in arranged(devices, {"data": 2, "model": 2}).devices.flat] == [3, 1, 2, 0]


def test_every_process_finds_its_own_rows_in_a_rearranged_mesh():
    placed = place(chips(4, 4, slices=2), {"model": 4, "data": 8}, ())
    parts = placed.parts
    assert sorted(part for held in parts.values() for part in held) == sorted(
        part for part in range(8) for _ in range(len(parts) * len(parts[0]) // 8)
    )
