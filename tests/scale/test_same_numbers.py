"""Tests of the same numbers at any size: any number of processes and devices has the same examples and rows at the same
steps.

XLA does not guarantee the order of a reduction over devices, so weights agree within `TOLERANCE`. With two devices on
both sides they agree bit for bit, because a sum of two terms has only one order.
"""

import itertools
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scale_runs import launch

pytestmark = pytest.mark.plugins  # processes are connected by estimator-cluster

#: The largest difference of weights, losses and metrics between two numbers of devices.
TOLERANCE = 1e-6
#: The sizes of the batches of 24 from the input's 102 examples.
SIZES = [24, 24, 24, 24, 6]

Seen = dict[str, np.ndarray]


class Runs:
    """Runs by their settings. Each runs once."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._numbers, self._seen = folder, itertools.count(), dict[str, list[Seen]]()

    def of(self, processes: int, devices: int, model_dir: Path | None = None, **settings: Any) -> list[Seen]:
        """Returns the results of every process."""
        key = f"{processes} {devices} {model_dir} {settings}"
        if key not in self._seen:
            out = self._folder / str(next(self._numbers))
            told = {"model_dir": str(model_dir or f"{out}_dir"), "out": str(out), "mesh": {"data": -1}, **settings}
            done = launch("numbers_worker.py", processes, told, devices=devices)
            assert done.returncode == 0, done.stdout
            self._seen[key] = [dict(np.load(f"{out}.{process}.npz")) for process in range(processes)]
        return self._seen[key]

    def begun(self, processes: int, devices: int, **settings: Any) -> tuple[list[Seen], Path]:
        """Returns the results of every process of a run that stopped after three steps, and its folder."""
        folder = self._folder / re.sub(r"\W+", "_", f"begun_{processes}_{devices}_{settings}")
        return self.of(processes, devices, model_dir=folder, max_steps=3, **settings), folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("numbers"))


def assert_same_numbers(found: Seen, expected: Seen, *, exactly: bool = False) -> None:
    """Checks for the same examples in the same order and the same values everywhere."""
    assert found.keys() == expected.keys()
    for name, value in found.items():
        if exactly or np.issubdtype(value.dtype, np.integer):
            np.testing.assert_array_equal(value, expected[name], name)
        else:
            np.testing.assert_allclose(value, expected[name], rtol=0, atol=TOLERANCE, err_msg=name)


def assert_in_order(seen: Seen) -> None:
    assert seen["sizes"].tolist() == SIZES
    assert seen["predicted"].tolist() == list(range(53))
    assert seen["marked"].tolist() == [number for number in range(53) if number % 5 != 4]


@pytest.mark.slow
def test_two_processes_have_the_numbers_of_one_with_two_devices_bit_for_bit(runs: Runs) -> None:
    (one,) = runs.of(1, 2)
    assert_in_order(one)
    for seen in runs.of(2, 1):
        assert_same_numbers(seen, one, exactly=True)


@pytest.mark.slow
def test_two_processes_without_compilation_have_the_numbers_of_one(runs: Runs) -> None:
    (one,) = runs.of(1, 2, config={"debug": True})
    assert_in_order(one)
    for seen in runs.of(2, 1, config={"debug": True}):
        assert_same_numbers(seen, one)


SETTINGS: list[dict[str, Any]] = [{}, {"config": {"accumulate_steps": 2}}, {"ragged": "pad"}]
every_setting = pytest.mark.parametrize("settings", SETTINGS, ids=["plain", "accumulated", "padded"])


@pytest.mark.slow
@every_setting
@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_every_size_has_the_numbers_of_one_device(
    runs: Runs, processes: int, devices: int, settings: dict[str, Any]
) -> None:
    (one,) = runs.of(1, 1, **settings)
    for seen in runs.of(processes, devices, **settings):
        assert_same_numbers(seen, one)


@pytest.mark.slow
def test_eight_processes_have_the_numbers_of_one(runs: Runs) -> None:
    (one,) = runs.of(1, 1)
    for seen in runs.of(8, 1):
        assert_same_numbers(seen, one)


@pytest.mark.slow
def test_a_mesh_whose_processes_hold_every_second_part_has_the_same_numbers(runs: Runs) -> None:
    """The axes of the mesh do not follow the order of the batch: process 0 holds the parts 0 and 2."""
    (one,) = runs.of(1, 4)
    for seen in runs.of(2, 2, mesh={"fsdp": 2, "data": 2}):
        assert_same_numbers(seen, one)


def continued(runs: Runs, tmp_path: Path, begun: tuple[int, int], rest: tuple[int, int], **settings: Any) -> list[Seen]:
    """Returns the results of each process of a run that began in other processes and stopped after three steps, in its
    second epoch.

    The folder is a copy, so that one beginning can be continued several times.
    """
    (*_, first), begun_in = runs.begun(*begun, **settings)
    shutil.copytree(begun_in, tmp_path / "run")
    return [
        {**second, **{name: np.concatenate([first[name], second[name]]) for name in ("losses", "numbers", "sizes")}}
        for second in runs.of(*rest, model_dir=tmp_path / "run", **settings)
    ]


@pytest.mark.slow
def test_a_run_of_two_processes_goes_on_in_one_at_the_same_example(runs: Runs, tmp_path: Path) -> None:
    (one,) = runs.of(1, 2)
    (seen,) = continued(runs, tmp_path, (2, 1), (1, 2))
    assert_same_numbers(seen, one, exactly=True)


@pytest.mark.slow
@every_setting
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_a_run_of_four_processes_goes_on_in_fewer_at_the_same_example(
    runs: Runs, tmp_path: Path, processes: int, settings: dict[str, Any]
) -> None:
    (one,) = runs.of(1, 1, **settings)
    for seen in continued(runs, tmp_path, (4, 1), (processes, 1), **settings):
        assert_same_numbers(seen, one)


@pytest.mark.slow
def test_a_run_of_three_processes_goes_on_in_four_at_the_same_example(runs: Runs, tmp_path: Path) -> None:
    (one,) = runs.of(1, 1)
    for seen in continued(runs, tmp_path, (3, 1), (4, 1)):
        assert_same_numbers(seen, one)
