"""Tests of checkpoints that TensorFlow wrote after 50 steps: 50 further steps here equal 100 steps there."""

import json
from pathlib import Path

import numpy as np
import pytest

from estimator_core.checkpoint import CheckpointItems
from estimator_core.cli import main
from estimator_core.errors import CheckpointMismatchError
from estimator_migration import convert
from estimator_migration.checkpoints.slots import Slot, slot_of
from plugins.migration.tests.canned import cases

HERE = Path(__file__).parent
RECORDED = HERE / "recorded" / "canned"
PROGRAM = ["--program", str(HERE / "canned" / "program.py")]


RECORDED_CASES = [
    pytest.param(*case, id="-".join(case), marks=() if case in cases.RECORDED[:1] else pytest.mark.slow)
    for case in cases.RECORDED
]


@pytest.mark.plugins
@pytest.mark.parametrize(("version", "estimator", "optimizer"), RECORDED_CASES)
def test_training_goes_on_as_there(
    version: str, estimator: str, optimizer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from plugins.migration.tests.canned.this_side import after_training

    out, written = tmp_path / "out", RECORDED / cases.folder_of(version, estimator, optimizer)
    hparams = f"version={version},estimator={estimator},optimizer={optimizer}"
    assert main(["migrate", "checkpoint", f"{written}/model.ckpt-50", str(out), *PROGRAM, "--hparams", hparams]) == 0
    assert "training continues after step 50." in capsys.readouterr().out
    seen = after_training(version, estimator, optimizer, written, out)
    assert max(seen.weights, seen.slots) < 1e-4
    assert seen.arrays > 10


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


@pytest.mark.parametrize("scope", ["t_0", "part_0"])
def test_slots_of_canned_estimators_of_tensorflow_1(scope: str) -> None:
    there = {name.replace("k/", f"k/{scope}/"): value for name, value in tensors().items()}
    assert convert(template(), there).taken["0/nu/k"] == f"k/{scope}/Adam_1"


def test_a_record_of_the_model_stays_as_it_is() -> None:
    """TensorFlow has no such variable."""
    record = np.frombuffer(b"{}", np.uint8)
    mean = np.zeros(3, np.float32)
    done = convert(template(model_state={"data_contract": record, "mean": mean}), tensors(mean=np.ones(3)))
    assert done.items.model_state["data_contract"].tobytes() == b"{}"
    assert done.items.model_state["mean"].tolist() == [1, 1, 1]
    assert "data_contract" not in done.taken
    with pytest.raises(CheckpointMismatchError, match="mean: not there as mean"):
        convert(template(model_state={"data_contract": record, "mean": mean}), tensors())


def test_names_that_differ_are_in_a_mapping() -> None:
    there = {f"old/{name}" if name.startswith("k") else name: value for name, value in tensors().items()}
    assert convert(template(), there, {"k": "old/k"}).taken["0/mu/k"] == "old/k/Adam"
    with pytest.raises(CheckpointMismatchError, match="k: not there as k"):
        convert(template(), there)


@pytest.mark.parametrize("scope", ["Adam", "training_2/Adam", "opt/Adam", "training/Adam"])
def test_slots_of_keras_are_found_in_any_scope(scope: str) -> None:
    """The slots of a custom model_fn are in `Adam`, those of a MultiHead of two heads in `training_2/Adam`."""
    ones = np.ones((2, 3))
    there = {"k": ones, f"{scope}/k/m": ones * 2, f"{scope}/k/v": ones * 3, f"{scope}/decay": np.float32(0)}
    done = convert(template(), {**there, "global_step": np.asarray(7)})
    assert (done.taken["0/mu/k"], done.taken["0/nu/k"]) == (f"{scope}/k/m", f"{scope}/k/v")


def test_slots_of_tensorflow_1_are_found_in_a_variable_scope() -> None:
    there = {name.replace("k/", "train/k/"): value for name, value in tensors().items()}
    assert convert(template(), there).taken["0/nu/k"] == "train/k/Adam_1"


def test_a_slot_belongs_to_the_whole_name_of_its_variable() -> None:
    """The slot of `a/k` sorts before that of `k`, and its name has the same ending."""
    zeros = np.zeros((2, 3), np.float32)
    here = template(variables={"a/k": zeros, "k": zeros, "k/m": zeros}, opt_state={"0/mu/a/k": zeros, "0/mu/k": zeros})
    names = ("a/k", "k", "k/m", "training/Adam/a/k/m", "training/Adam/k/m", "training/Adam/k/m/m")
    done = convert(here, {name: np.full((2, 3), at) for at, name in enumerate(names)})
    assert done.taken["0/mu/a/k"] == "training/Adam/a/k/m"
    assert done.taken["0/mu/k"] == "training/Adam/k/m"


def test_a_slot_that_two_optimizers_have_is_refused() -> None:
    zeros = np.zeros((2, 3), np.float32)
    there = {"k": zeros, "one/Adam/k/m": zeros, "two/Adam/k/m": zeros}
    with pytest.raises(CheckpointMismatchError, match=r"0/mu/k: several arrays match; .*: one/Adam/k/m, two/Adam/k/m"):
        convert(template(opt_state={"0/mu/k": zeros}), there)
    named = convert(template(opt_state={"0/mu/k": zeros}), there, {"0/mu/k": "two/Adam/k/m"})
    assert named.taken["0/mu/k"] == "two/Adam/k/m"


def test_the_slot_of_a_part_is_not_that_of_a_variable_in_a_scope_of_the_optimizer() -> None:
    """`Adam/w/part_0/m` is the slot of `w/part_0` in the scope `Adam`, or the slot of a part of `Adam/w`."""
    zeros = np.zeros((2, 3), np.float32)
    slots = dict.fromkeys(("0/mu/Adam/w", "0/mu/w/part_0"), zeros)
    here = template(variables=dict.fromkeys(("Adam/w", "w/part_0"), zeros), opt_state=slots)
    there = dict.fromkeys(("Adam/w", "w/part_0", "Adam/w/part_0/m", "Adam/Adam/w/m"), np.ones((2, 3)))
    done = convert(here, there)
    assert (done.taken["0/mu/Adam/w"], done.taken["0/mu/w/part_0"]) == ("Adam/Adam/w/m", "Adam/w/part_0/m")
    del there["Adam/Adam/w/m"]
    with pytest.raises(CheckpointMismatchError, match="0/mu/w/part_0: Adam/w/part_0/m is already used by 0/mu/Adam/w"):
        convert(here, there)


def test_two_variables_that_names_make_one_have_its_slots() -> None:
    """Two variables share an array there, while the model here has one array for each."""
    zeros = np.zeros((2, 3), np.float32)
    here = template(variables={"a/k": zeros, "b/k": zeros}, opt_state={"0/mu/a/k": zeros, "0/mu/b/k": zeros})
    there = dict.fromkeys(("k", "k/Adam"), np.ones((2, 3)))
    done = convert(here, there, {"a/k": "k", "b/k": "k"})
    assert (done.taken["0/mu/a/k"], done.taken["0/mu/b/k"]) == ("k/Adam", "k/Adam")
    twice = template(opt_state={"0/mu/k": zeros, "1/mu/k": zeros})
    with pytest.raises(CheckpointMismatchError, match="1/mu/k: k/Adam is already used by 0/mu/k"):
        convert(twice, there)


def test_a_slot_beside_its_variable_is_its_own_though_its_name_ends_as_that_of_another() -> None:
    zeros = np.zeros((2, 3), np.float32)
    here = template(variables={"a/k": zeros, "k": zeros}, opt_state={"0/mu/a/k": zeros, "0/mu/k": zeros})
    done = convert(here, dict.fromkeys(("a/k", "k", "a/k/Adam", "k/Adam"), np.ones((2, 3))))
    assert (done.taken["0/mu/a/k"], done.taken["0/mu/k"]) == ("a/k/Adam", "k/Adam")


def test_all_that_does_not_fit_is_named_at_once() -> None:
    with pytest.raises(CheckpointMismatchError) as error:
        convert(template(), {"k": np.ones((3, 2)), "global_step": np.asarray(1)})
    message = str(error.value)
    assert "k: (2, 3) here, (3, 2) there (k)" in message
    assert "0/mu/k: not there" in message


KERAS = {"training/SGD/k/momentum": np.full((2, 3), -0.4), "training/SGD/learning_rate": np.float32(0.2)}
TRACE = {"0/trace/k": np.zeros((2, 3), np.float32)}


def test_the_momentum_of_keras_is_freed_of_its_rate() -> None:
    found = convert(template(opt_state=TRACE), {"k": np.ones((2, 3)), **KERAS}).items.opt_state["0/trace/k"]
    np.testing.assert_allclose(found, np.full((2, 3), 2.0), rtol=1e-6)
    assert found.dtype == np.float32
    first = {"k": np.ones((2, 3)), "k/Momentum": np.full((2, 3), 2.0)}
    np.testing.assert_array_equal(convert(template(opt_state=TRACE), first).items.opt_state["0/trace/k"], 2.0)


@pytest.mark.parametrize("names", [None, {"0/trace/k": "SGD/k/momentum"}])
def test_the_momentum_of_keras_is_freed_of_its_rate_in_any_scope(names: dict[str, str] | None) -> None:
    there = {name.removeprefix("training/"): value for name, value in KERAS.items()}
    done = convert(template(opt_state=TRACE), {"k": np.ones((2, 3)), **there}, names)
    np.testing.assert_allclose(done.items.opt_state["0/trace/k"], np.full((2, 3), 2.0), rtol=1e-6)


@pytest.mark.parametrize("variable", ["SGD", "training"])
def test_the_momentum_of_a_variable_that_is_named_as_a_scope_is_freed_of_its_rate(variable: str) -> None:
    zeros, ones = np.zeros((2, 3), np.float32), np.ones((2, 3))
    scope = "SGD" if variable == "SGD" else "training/SGD"
    there = {variable: ones, f"{scope}/{variable}/momentum": -ones, f"{scope}/learning_rate": np.float32(0.5)}
    done = convert(template(variables={variable: zeros}, opt_state={f"0/trace/{variable}": zeros}), there)
    np.testing.assert_array_equal(done.items.opt_state[f"0/trace/{variable}"], 2.0)


def test_a_named_momentum_is_freed_of_the_rate_in_its_own_scope() -> None:
    there = {name.replace("/k/", "/k_1/"): value for name, value in KERAS.items()}
    names = {"0/trace/k": "training/SGD/k_1/momentum"}
    done = convert(template(opt_state=TRACE), {"k": np.ones((2, 3)), **there}, names)
    np.testing.assert_allclose(done.items.opt_state["0/trace/k"], np.full((2, 3), 2.0), rtol=1e-6)


@pytest.mark.parametrize(
    "change", [{"training/SGD/decay": np.float32(0.1)}, {"training/SGD/learning_rate": np.float32(0)}]
)
def test_a_momentum_whose_rate_changes_is_refused(change: dict[str, np.ndarray]) -> None:
    with pytest.raises(CheckpointMismatchError, match="is a sum of updates, and their rate changes"):
        convert(template(opt_state=TRACE), {"k": np.ones((2, 3)), **KERAS, **change})


RMS = {"0/nu/k": np.zeros((2, 3), np.float32), "2/trace/k": np.zeros((2, 3), np.float32)}
CENTERED = {"0/mu/k": np.zeros((2, 3), np.float32), **RMS}


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (RMS, {"0/nu/k": "k/RMSProp", "2/trace/k": "k/RMSProp_1"}),
        (CENTERED, {"0/nu/k": "k/RMSProp", "0/mu/k": "k/RMSProp_1", "2/trace/k": "k/RMSProp_2"}),
        (RMS, {"0/nu/k": "training/RMSprop/k/rms", "2/trace/k": "training/RMSprop/k/momentum"}),
        (
            CENTERED,
            {
                "0/nu/k": "training/RMSprop/k/rms",
                "0/mu/k": "training/RMSprop/k/mg",
                "2/trace/k": "training/RMSprop/k/momentum",
            },
        ),
    ],
)
def test_the_momentum_of_rmsprop_has_the_other_sign(here: dict[str, np.ndarray], there: dict[str, str]) -> None:
    """TensorFlow subtracts a sum of updates, and optax adds one. Both sums include the rate."""
    slots = {name: np.full((2, 3), at + 1.0) for at, name in enumerate(there.values())}
    rates = {"training/RMSprop/learning_rate": np.float32(0.2), "training/RMSprop/decay": np.float32(0.1)}
    done = convert(template(opt_state=here), {"k": np.ones((2, 3)), **slots, **rates})
    assert {leaf: done.taken[leaf] for leaf in here} == there
    for at, leaf in enumerate(there):
        np.testing.assert_array_equal(done.items.opt_state[leaf], (-1 if "trace" in leaf else 1) * (at + 1.0))


def test_the_momentum_of_rmsprop_is_no_mean() -> None:
    """A run that was not centered has no mean, so a centered optimizer is refused here."""
    slots = {"k/RMSProp": np.ones((2, 3)), "k/RMSProp_1": np.ones((2, 3))}
    with pytest.raises(CheckpointMismatchError, match="0/mu/k: not there"):
        convert(template(opt_state=CENTERED), {"k": np.ones((2, 3)), **slots})


def test_the_longest_variable_owns_a_slot() -> None:
    assert slot_of("0/mu/a/k", ["k", "a/k"]) == Slot(word="mu", variable="a/k")


@pytest.mark.plugins
def test_names_of_a_mapping_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = tmp_path / "names.json"
    names.write_text(json.dumps({"dnn/logits/bias": "nothing"}))
    written = RECORDED / cases.folder_of(*cases.RECORDED[0])
    command = [
        "migrate",
        "checkpoint",
        f"{written}/model.ckpt-50",
        str(tmp_path / "out"),
        *PROGRAM,
        "--names",
        str(names),
    ]
    assert main(command) != 0
    assert "dnn/logits/bias: not there as nothing" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    names.write_text(json.dumps({"dnn/logits/offset": "dnn/logits/bias"}))
    assert main(command) == 2
    assert "Names are given for arrays that the model does not have: ['dnn/logits/offset']." in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
