"""Directories of transformers are recognized by every function that takes a checkpoint."""

import json
import shutil
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from safetensors.numpy import load_file, save_file

import estimator_core as ec
from estimator_canned_bert import BertConfig, BertModel, read_checkpoint
from estimator_core.cli import main
from estimator_core.errors import ArgumentError, CheckpointCorruptError, CheckpointError, CheckpointNotFoundError
from estimator_core.testing import InitialValuesSuite
from plugins.canned_bert.tests.directories import hugging_face_directory

QUERY = "bert/encoder/layer_0/attention/self/query/kernel"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return hugging_face_directory("bert_pairs", tmp_path / "hugging_face")


class TestTransformers(InitialValuesSuite):
    def make(self, folder: Path):
        return ec.Plugins().get("initial_values", "transformers")(hugging_face_directory("bert_pairs", folder / "in"))

    def variables(self) -> dict[str, np.ndarray]:
        shapes = {"bert/pooler/dense/bias": (16,), "extra": (3,)}
        return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}


def config_of_a_run(place: Path) -> ec.RunConfig:
    return ec.RunConfig(model_dir=str(place), default_hooks=False)


def input_fn():
    ids = np.ones((2, 4), np.int32)
    return iter([({"ids": ids}, np.zeros(2, np.float32))])


def model_of(directory: Path, initialise: bool):
    shape = BertConfig.from_pretrained(directory)

    def model_fn(features, labels, mode):
        pooled = BertModel(shape, False, features["ids"]).pooled_output
        kernel = ec.get_variable("head", (pooled.shape[-1],), np.ones(pooled.shape[-1], np.float32))
        if initialise:
            ec.init_from_checkpoint(directory, {"bert/": "bert/"})
        loss = jnp.mean((pooled @ kernel - labels) ** 2)
        return ec.EstimatorSpec(mode, loss=loss, predictions={"y": pooled @ kernel}, train_op=optax.sgd(0.0))

    return model_fn


@pytest.mark.parametrize("door", [pytest.param("warm_start_from", marks=pytest.mark.slow), "init_from_checkpoint"])
def test_weights_come_into_a_model(door: str, directory: Path, tmp_path: Path) -> None:
    warm = str(directory) if door == "warm_start_from" else None
    model_fn = model_of(directory, door == "init_from_checkpoint")
    estimator = ec.Estimator(model_fn, config=config_of_a_run(tmp_path / "run"), warm_start_from=warm)
    estimator.train(input_fn, steps=1)
    expected = read_checkpoint(directory)
    for name in estimator.get_variable_names():
        if name.startswith("bert/"):
            np.testing.assert_array_equal(estimator.get_variable_value(name), expected[name], err_msg=name)
    assert estimator.get_variable_value("head").tolist() == [1.0] * len(estimator.get_variable_value("head"))
    shutil.rmtree(directory)  # a second call continues from the run's own checkpoint
    assert np.isfinite(ec.Estimator(model_fn, config=config_of_a_run(tmp_path / "run")).evaluate(input_fn)["loss"])


def test_load_variables_takes_the_directory_and_the_file(directory: Path) -> None:
    expected = read_checkpoint(directory)
    for path in (directory, str(directory), directory / "model.safetensors"):
        found = ec.load_variables(path)
        assert found.keys() == expected.keys()
        np.testing.assert_array_equal(found[QUERY], expected[QUERY])
    assert list(ec.load_variables(directory, [QUERY])) == [QUERY]


def test_other_architectures_keep_their_names(tmp_path: Path) -> None:
    weights = {"transformer.h.0.attn.weight": np.arange(6, dtype=np.float32).reshape(2, 3)}
    save_file(weights, tmp_path / "model.safetensors")
    for config in ({"model_type": "gpt2"}, {}, None):
        (tmp_path / "config.json").unlink(missing_ok=True)
        if config is not None:
            (tmp_path / "config.json").write_text(json.dumps(config))
        found = ec.load_variables(tmp_path)
        assert found.keys() == weights.keys()
        np.testing.assert_array_equal(found["transformer.h.0.attn.weight"], weights["transformer.h.0.attn.weight"])


@pytest.mark.parametrize("case", ["no model_type", "bert_config.json", "a bare encoder"])
def test_bert_is_known_without_its_model_type(case: str, directory: Path) -> None:
    expected = read_checkpoint(directory)
    config = json.loads((directory / "config.json").read_text())
    del config["model_type"]
    (directory / "config.json").write_text(json.dumps(config))
    if case == "bert_config.json":
        (directory / "config.json").rename(directory / "bert_config.json")
    if case == "a bare encoder":
        tensors = load_file(directory / "model.safetensors")
        bare = {name.removeprefix("bert."): array for name, array in tensors.items()}
        save_file(bare, directory / "model.safetensors")
    found = ec.load_variables(directory)
    assert found.keys() == expected.keys()
    np.testing.assert_array_equal(found[QUERY], expected[QUERY])


def test_a_configuration_that_lacks_or_is_of_the_other_architecture_is_told(directory: Path, tmp_path: Path) -> None:
    (directory / "config.json").unlink()
    with pytest.raises(ArgumentError, match="There is no model configuration in"):
        ec.load_variables(directory)
    (directory / "bert_config.json").write_text('{"embedding_size": 8, "hidden_size": 12}')
    with pytest.raises(ArgumentError, match="describes albert, but the arrays have the names of bert"):
        ec.load_variables(directory)
    (directory / "albert_config.json").write_text('{"model_type": "electra"}')
    assert "bert.encoder.layer.0.attention.self.query.weight" in ec.load_variables(directory)


def test_a_dtype_that_numpy_lacks_is_named(tmp_path: Path) -> None:
    arrays = {"plain": ("F32", 0, 4), "w": ("F8_E4M3", 4, 5)}
    entries = {name: {"dtype": kind, "shape": [1], "data_offsets": at} for name, (kind, *at) in arrays.items()}
    header = json.dumps(entries).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(5))
    with pytest.raises(ArgumentError, match=r"model\.safetensors: the array 'w' is of dtype F8_E4M3, which numpy does"):
        ec.load_variables(tmp_path)


def test_what_cannot_be_read_says_why(directory: Path, tmp_path: Path) -> None:
    (directory / "config.json").write_text("{")
    with pytest.raises(CheckpointCorruptError, match=r"config\.json cannot be read"):
        ec.load_variables(directory)
    (directory / "config.json").write_text("{}")
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(CheckpointCorruptError, match="is not a complete safetensors file"):
        ec.load_variables(directory)
    weights.rename(directory / "pytorch_model.bin")
    with pytest.raises(CheckpointCorruptError, match=r"pytorch_model\.bin cannot be read"):
        ec.load_variables(directory)
    with pytest.raises(CheckpointNotFoundError):
        ec.load_variables(tmp_path / "absent")


def test_a_model_dir_that_is_one_is_refused(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estimator = ec.Estimator(model_of(directory, False), config=config_of_a_run(directory))
    with pytest.raises(CheckpointError, match="has a checkpoint of transformers and none of this framework"):
        estimator.train(input_fn, steps=1)
    with pytest.raises(CheckpointError, match="use another model_dir and pass this one as warm_start_from"):
        estimator.evaluate(input_fn)
    assert main(["plugins", "--json"]) == 0
    assert "Values of a directory of transformers." in capsys.readouterr().out
