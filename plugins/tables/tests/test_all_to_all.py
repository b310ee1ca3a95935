"""A table that several devices share trains as on one device and sends less than a plain look-up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import split_program
from collective_bytes import sent_bytes

import estimator_core as ec
from estimator_core.testing import run_with_devices
from estimator_tables import AllToAll

PROGRAM = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import split_program; "


def on_devices(count: int, root: Path, *jobs: str) -> list[Any]:
    output = run_with_devices(count, PROGRAM + "split_program.main(*sys.argv[1:])", str(root), *jobs)
    return [json.loads(line) for line in output.splitlines()]


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    """The results of training, evaluation and compilation on eight devices."""
    root = tmp_path_factory.mktemp("eight")
    jobs = [f"train:{name}:{name}:{split_program.STEPS}" for name in ("adam", "on_host", "cached")]
    *_, results, traffic = on_devices(8, root, *jobs, "evaluate:adam:adam", "traffic")
    return root, results, traffic


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adagrad", "adam", "clipped"])
def test_eight_devices_train_as_one(tmp_path: Path, optimizer: str) -> None:
    on_devices(8, tmp_path, f"train:{optimizer}:eight:{split_program.STEPS}")
    alone = split_program.train(str(tmp_path / "one"), optimizer, split_program.STEPS)
    together = ec.load_variables(str(tmp_path / "eight"))
    for name, value in alone.variables.items():
        np.testing.assert_allclose(together[name], value, rtol=0, atol=1e-6, err_msg=name)


def test_a_table_in_the_memory_of_the_host_is_the_same(eight: tuple[Path, Any, Any]) -> None:
    """One message has room for all ids there, so sums may have another order."""
    on_device, on_host = (ec.load_variables(str(eight[0] / name)) for name in ("adam", "on_host"))
    for name, value in on_device.items():
        np.testing.assert_allclose(on_host[name], value, rtol=0, atol=1e-6, err_msg=name)


def test_a_cache_on_each_device_changes_no_bit(eight: tuple[Path, Any, Any]) -> None:
    alone, cached = (ec.load_variables(str(eight[0] / name)) for name in ("on_host", "cached"))
    assert {name: value.tobytes() for name, value in cached.items()} == {
        name: value.tobytes() for name, value in alone.items()
    }


def test_evaluation_and_predictions_of_a_split_table(eight: tuple[Path, Any, Any]) -> None:
    estimator = split_program.estimator_in(str(eight[0] / "adam"), "adam")
    predictions = [each["y"] for each in estimator.predict(lambda: [split_program.batches()[-1][0]])]
    loss = estimator.evaluate(split_program.batches)["loss"]
    np.testing.assert_allclose(eight[1], [loss, *predictions], rtol=1e-5)


def test_a_step_without_compilation_ends_on_several_devices(tmp_path: Path) -> None:
    """Devices that ran each operation separately waited for each other forever, and tables of the host were refused."""
    on_devices(4, tmp_path, "train:adam:compiled:1", "debug:adam:eager:1", "debug:on_host:eager_on_host:1")
    compiled = ec.load_variables(str(tmp_path / "compiled"))
    for folder in ("eager", "eager_on_host"):
        for name, value in ec.load_variables(str(tmp_path / folder)).items():
            np.testing.assert_allclose(value, compiled[name], rtol=0, atol=1e-6, err_msg=f"{folder}: {name}")


@pytest.mark.slow
def test_a_checkpoint_of_eight_devices_goes_on_with_one_and_with_two(
    tmp_path: Path,
) -> None:
    on_devices(8, tmp_path, "train:adam:resharded:2")
    split_program.train(str(tmp_path / "resharded"), "adam", 3)
    on_devices(2, tmp_path, f"train:adam:resharded:{split_program.STEPS}")
    whole = split_program.train(str(tmp_path / "whole"), "adam", split_program.STEPS)
    resharded = ec.load_variables(str(tmp_path / "resharded"))
    np.testing.assert_allclose(resharded["table"], whole.variables["table"], rtol=0, atol=1e-6)


def test_a_device_sends_what_its_examples_need(eight: tuple[Path, Any, Any]) -> None:
    """Each device sends and answers for its 1024 of 8192 ids. Without an access, it receives the rows of all ids."""
    split, plain = (eight[2][name] for name in ("all_to_all", "plain"))
    messages = 2 * 1024 * 7 // 8
    sent = sent_bytes(split["read"], 8)
    assert sent.pop("all-reduce") < 16  # the number of rounds
    assert sent == {"all-to-all": messages * (1 + 16) * 4}
    assert sent_bytes(plain["read"], 8) == {"all-gather": 8192 * 4 * 7 // 8, "all-reduce": 2 * 8192 * 16 * 4 * 7 // 8}
    assert 7 * sum(sent.values()) < sum(sent_bytes(plain["read"], 8).values())


def test_a_device_sends_a_gradient_for_each_row_of_its_examples(eight: tuple[Path, Any, Any]) -> None:
    split, plain = (sent_bytes(eight[2][name]["update"], 8) for name in ("all_to_all", "plain"))
    one_message = 2 * 1024 * 7 // 8 * (1 + 16) * 4
    assert split["all-to-all"] == (1 + 4) * one_message  # also the form with room for all ids
    assert sum(plain.values()) == 2_838_528


def test_rows_are_updated_in_place(eight: tuple[Path, Any, Any]) -> None:
    part = 400_000 * 16 * 4 // 8
    assert eight[2]["all_to_all"]["temporary_bytes"] < part


def test_on_one_device_it_is_a_table_without_access() -> None:
    table, ids = jnp.arange(6.0).reshape(3, 2), jnp.array([[2, -1], [3, 0]])
    assert AllToAll().read(table, ids).tolist() == [[[4, 5], [0, 0]], [[0, 0], [0, 1]]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"axes": "data"}, "axes must be a tuple of names of mesh axes, given: 'data'"),
        ({"axes": ()}, "axes must be a tuple of names of mesh axes"),
        ({"memory": "host"}, "memory must be None or one of pinned_host, unpinned_host, given: 'host'"),
        ({"room": 0.5}, "room must be at least 1, given: 0.5"),
        ({"room": float("nan")}, "room must be at least 1, given: nan"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ec.EstimatorError, match=message):
        AllToAll(**arguments)


def test_importing_the_package_imports_no_jax() -> None:
    code = "import sys, estimator_tables; assert 'jax' not in sys.modules; assert 'AllToAll' in dir(estimator_tables)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert jax.__name__ == "jax"
