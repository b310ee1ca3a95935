"""Checkpoints recorded with TensorFlow 2.15.1 after 20 steps: 20 steps more here are 40 steps there."""

import json
from pathlib import Path

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.checkpoint import CheckpointItems, read_checkpoint
from estimator_core.cli import main
from estimator_core.errors import CheckpointMismatchError
from estimator_migration import convert
from estimator_migration.checkpoints.slots import Slot, names_of, slot_of

HERE = Path(__file__).parent
RECORDED = HERE / "recorded" / "canned"
OPTIMIZERS = ("Adagrad", "Adam", "Ftrl", "RMSProp", "SGD")


@pytest.mark.plugins
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_goes_on_as_there(optimizer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from plugins.migration.tests.canned_program import input_fn, make

    out = tmp_path / "out"
    program = ["--program", str(HERE / "canned_program.py"), "--hparams", f"optimizer={optimizer}"]
    assert main(["migrate", "checkpoint", str(RECORDED / optimizer), str(out), *program]) == 0
    assert "training continues after step 20." in capsys.readouterr().out
    estimator = make(optimizer, ec.RunConfig(model_dir=str(out), default_hooks=False))
    estimator.train(input_fn(), max_steps=40)
    after = np.load(RECORDED / f"{optimizer}_after.npz")
    there = {name.replace("|", "/"): after[name] for name in after.files}
    items = read_checkpoint(out)
    assert int(items.clock[0]) == 40
    for path, value in items.variables.items():
        np.testing.assert_allclose(value, there[path], rtol=0, atol=1e-4, err_msg=path)
    for leaf, value in items.opt_state.items():
        slot = slot_of(leaf, items.variables)
        expected = there["global_step"] if slot.counts_steps else there[names_of(slot, there)[0]]
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-4, err_msg=leaf)


def template(**changes: object) -> CheckpointItems:
    kernel = np.zeros((2, 3), np.float32)
    given = {"variables": {"k": kernel}, "opt_state": {"0/mu/k": kernel, "0/nu/k": kernel, "0/count": np.int32(0)}}
    return CheckpointItems(clock=np.arange(4, dtype=np.uint32), **{**given, **changes})


def tensors(**changes: np.ndarray) -> dict[str, np.ndarray]:
    ones = np.ones((2, 3))
    given = {"k": ones, "k/Adam": ones * 2, "k/Adam_1": ones * 3, "beta1_power": np.asarray(0.9)}
    return {**given, "global_step": np.asarray(7), **changes}


def test_slots_of_the_optimizers_of_tensorflow_1() -> None:
    done = convert(template(), tensors())
    assert done.taken == {"k": "k", "0/mu/k": "k/Adam", "0/nu/k": "k/Adam_1", "0/count": "global_step"}
    assert done.unused == ("beta1_power",)
    assert done.items.clock.tolist() == [7, 1, 2, 3]
    assert done.items.opt_state["0/nu/k"].dtype == np.float32
    np.testing.assert_array_equal(done.items.opt_state["0/nu/k"], np.full((2, 3), 3))
    assert "not used: beta1_power" in done.report()


def test_names_that_differ_are_in_a_mapping() -> None:
    there = {f"old/{name}" if name.startswith("k") else name: value for name, value in tensors().items()}
    assert convert(template(), there, {"k": "old/k"}).taken["0/mu/k"] == "old/k/Adam"
    with pytest.raises(CheckpointMismatchError, match="k: not there as k"):
        convert(template(), there)


def test_all_that_does_not_fit_is_named_at_once() -> None:
    with pytest.raises(CheckpointMismatchError) as error:
        convert(template(), {"k": np.ones((3, 2)), "global_step": np.asarray(1)})
    message = str(error.value)
    assert "k: (2, 3) here, (3, 2) there (k)" in message
    assert "0/mu/k: not there" in message


def test_the_longest_variable_owns_a_slot() -> None:
    assert slot_of("0/mu/a/k", ["k", "a/k"]) == Slot(word="mu", variable="a/k")


@pytest.mark.plugins
def test_names_of_a_mapping_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = tmp_path / "names.json"
    names.write_text(json.dumps({"dnn/logits/bias": "nothing"}))
    program = ["--program", str(HERE / "canned_program.py"), "--hparams", "optimizer=SGD"]
    command = ["migrate", "checkpoint", str(RECORDED / "SGD"), str(tmp_path / "out"), *program, "--names", str(names)]
    assert main(command) != 0
    assert "dnn/logits/bias: not there as nothing" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
