"""Tests of TensorFlow checkpoints, recorded with 2.15.1: they are read without TensorFlow, and never ignored."""

import shutil
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.errors import CheckpointCorruptError, CheckpointError, CheckpointNotFoundError, VariableError
from estimator_core.testing import InitialValuesSuite
from estimator_warm_start import read_tensorflow, tensorflow_prefix
from estimator_warm_start.tensorflow.slices import slice_key

RECORDED = Path(__file__).parent / "recorded" / "partitioned"
W = np.arange(21, dtype=np.float32).reshape(7, 3)


def model_fn(features, labels, mode):
    w = ec.get_variable("w", (7, 3))
    extra = ec.get_variable("extra", (), np.asarray(2.0, np.float32))
    loss = jnp.mean((features @ w) ** 2) * extra
    return ec.EstimatorSpec(mode, loss=loss, predictions={"y": features @ w}, train_op=optax.sgd(0.0))


def input_fn():
    return [(np.eye(7, dtype=np.float32), np.zeros(7, np.float32))]


def predict_input_fn():
    return iter([np.eye(7, dtype=np.float32)])


def weights_after_a_step(model_dir: Path, model=model_fn, **arguments) -> np.ndarray:
    config = ec.RunConfig(model_dir=str(model_dir), default_hooks=False)
    return ec.Estimator(model, config=config, **arguments).train(input_fn, steps=1).get_variable_value("w")


class TestTensorFlow(InitialValuesSuite):
    def make(self, folder: Path):
        return ec.Plugins().get("initial_values", "tensorflow")(RECORDED)

    def variables(self) -> dict[str, np.ndarray]:
        return {"w": np.zeros((7, 3), np.float32), "extra": np.ones(3, np.float32)}


def test_partitioned_variables_are_put_together() -> None:
    found = read_tensorflow(RECORDED / "model.ckpt-3")
    np.testing.assert_array_equal(found["w"], W)
    np.testing.assert_array_equal(found["deep/er"], np.arange(600, dtype=np.float32).reshape(300, 2))


@pytest.mark.parametrize(("model", "first"), [("linear", "part_0"), ("dnn", "t_0")])
def test_slots_of_the_parts_of_a_variable_are_put_together(model: str, first: str) -> None:
    """The first momentum is the gradient, which counts from 0. Eleven parts sort by number, and `_10` is the last."""
    found = read_tensorflow(RECORDED.parent / "slots" / model)
    assert sorted(found) == [f"{model}/w", f"{model}/w/{first}/Momentum"]
    np.testing.assert_array_equal(found[f"{model}/w/{first}/Momentum"], np.arange(28, dtype=np.float32).reshape(14, 2))


@pytest.mark.parametrize("model", ["linear", "dnn"])
def test_slots_that_lack_a_part_are_left_out(model: str) -> None:
    assert sorted(read_tensorflow(RECORDED.parent / "slots" / f"{model}_lost")) == [f"{model}/w"]


def test_every_type_of_number_is_read() -> None:
    found = read_tensorflow(RECORDED / "model.ckpt-3")
    types = (
        "float64",
        "int8",
        "uint8",
        "int16",
        "int64",
        "float16",
        "bfloat16",
        "uint16",
        "uint32",
        "uint64",
        "complex64",
    )
    for name in types:
        assert found[name].dtype.name == name
        np.testing.assert_array_equal(found[name].astype(np.float64 if name != "complex64" else name), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(found["flag"], [True, False])
    assert "text" not in found


def test_only_what_is_wanted_is_read() -> None:
    assert list(read_tensorflow(RECORDED / "model.ckpt-3", lambda name: name == "w")) == ["w"]


def damaged_at(place: int, folder: Path) -> Path:
    """Copies the checkpoint with one flipped byte in its data, and returns the prefix of the copy."""
    copy = shutil.copytree(RECORDED, folder / str(place))
    data = copy / "model.ckpt-3.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    content[place] ^= 0x7F
    data.write_bytes(content)
    return copy / "model.ckpt-3"


def test_no_flipped_byte_changes_a_number(tmp_path: Path) -> None:
    """Each byte belongs to a whole variable, to a part of one, or to a text, which is not read."""
    whole = read_tensorflow(RECORDED / "model.ckpt-3")
    size = (RECORDED / "model.ckpt-3.data-00000-of-00001").stat().st_size
    told: set[str] = set()
    for place in range(0, size, 5):
        try:
            found = read_tensorflow(damaged_at(place, tmp_path))
        except CheckpointCorruptError as error:
            told.add(next(name for name in whole if f"{name!r}" in str(error)))
            continue
        assert all(found[name].tobytes() == value.tobytes() for name, value in whole.items()), place
    assert told == set(whole)


@pytest.mark.parametrize("way", ["load_variables", "warm_start_from", "settings", "init_from_checkpoint"])
def test_a_flipped_byte_names_variable_and_file(way: str, tmp_path: Path) -> None:
    data = (RECORDED / "model.ckpt-3.data-00000-of-00001").read_bytes()
    prefix = damaged_at(data.rindex(W[5:].tobytes()), tmp_path)

    def with_request(features, labels, mode):
        spec = model_fn(features, labels, mode)
        ec.init_from_checkpoint(prefix, {"w": "w"})
        return spec

    told = rf"{prefix}\.data-00000-of-00001 is damaged: the data of 'w' .*Copy both files again"
    with pytest.raises(CheckpointCorruptError, match=told):
        {
            "load_variables": lambda: ec.load_variables(prefix),
            "warm_start_from": lambda: weights_after_a_step(tmp_path / "run", warm_start_from=str(prefix)),
            "settings": lambda: weights_after_a_step(
                tmp_path / "run", warm_start_from=ec.WarmStartSettings(prefix, "w")
            ),
            "init_from_checkpoint": lambda: weights_after_a_step(tmp_path / "run", with_request),
        }[way]()


def test_keys_of_slices_with_long_numbers() -> None:
    """The coded numbers have lengths 1, 2 and 3. A negative number stands for the whole axis."""
    assert slice_key("w", [(0, 63), (64, 8191), (8192, -1)]).hex() == "007700010103" + "80bf" + "c040dfff" + "e020007f"


@pytest.mark.parametrize("path", [RECORDED, RECORDED / "model.ckpt-3", RECORDED / "model.ckpt-3.index"])
def test_load_variables_reads_it(path: Path) -> None:
    np.testing.assert_array_equal(ec.load_variables(path)["w"], W)
    assert list(ec.load_variables(path, names=["w"])) == ["w"]
    assert list(ec.load_variables(path, names="w")) == ["w"]


def test_load_variables_names_what_is_absent() -> None:
    with pytest.raises(ValueError, match=r"has no variables \['v'\]"):
        ec.load_variables(RECORDED, names=["v"])


@pytest.mark.parametrize(
    "source",
    [str(RECORDED), str(RECORDED / "model.ckpt-3"), ec.WarmStartSettings(RECORDED, vars_to_warm_start="w")],
    ids=["directory", "prefix", "settings"],
)
def test_warm_start_from_reads_it(source, tmp_path: Path) -> None:
    np.testing.assert_array_equal(weights_after_a_step(tmp_path, warm_start_from=source), W)


def test_init_from_checkpoint_reads_it(tmp_path: Path) -> None:
    def with_request(features, labels, mode):
        spec = model_fn(features, labels, mode)
        mapping, _ = ec.get_assignment_map_from_checkpoint(ec.trainable_variables(), RECORDED)
        assert mapping == {"w": "w"}  # in every trace
        ec.init_from_checkpoint(RECORDED, mapping)
        return spec

    np.testing.assert_array_equal(weights_after_a_step(tmp_path, with_request), W)


def test_shapes_are_compared(tmp_path: Path) -> None:
    def other(features, labels, mode):
        ec.get_variable("int8", (3, 3))
        return model_fn(features, labels, mode)

    with pytest.raises(VariableError, match="int8"):
        weights_after_a_step(tmp_path, other, warm_start_from=ec.WarmStartSettings(RECORDED, "int8"))


@pytest.mark.parametrize("allow_untrained", [False, True])
@pytest.mark.parametrize("call", ["train", "evaluate", "predict"])
def test_a_model_dir_with_one_is_never_ignored(call: str, allow_untrained: bool, tmp_path: Path) -> None:
    model_dir = tmp_path / "old"
    shutil.copytree(RECORDED, model_dir)
    before = sorted(path.name for path in model_dir.iterdir())
    config = ec.RunConfig(model_dir=str(model_dir), default_hooks=False, allow_untrained=allow_untrained)
    estimator = ec.Estimator(model_fn, config=config)
    with pytest.raises(CheckpointError, match=rf"estimator migrate checkpoint {model_dir} OUT"):
        {
            "train": lambda: estimator.train(input_fn, max_steps=60),
            "evaluate": lambda: estimator.evaluate(input_fn),
            "predict": lambda: next(iter(estimator.predict(predict_input_fn))),
        }[call]()
    assert {path.name for path in model_dir.iterdir()} >= set(before)
    assert not (model_dir / "checkpoints").exists()


def test_other_directories_are_as_before(tmp_path: Path) -> None:
    (tmp_path / "events.out").write_text("")
    assert tensorflow_prefix(tmp_path) is None
    with pytest.raises(CheckpointNotFoundError, match="There is no checkpoint in"):
        ec.load_variables(tmp_path)
    assert weights_after_a_step(tmp_path).shape == (7, 3)
