"""Tests of reading and writing weights: TensorFlow and safetensors are bitwise equal, refusals, and log messages."""

import json
import logging
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import estimator_core as ec
from estimator_canned_bert import BertClassifier, BertConfig, read_checkpoint, save_pretrained
from estimator_core.errors import ArgumentError, CheckpointCorruptError
from estimator_warm_start.tensorflow.sstable import read_table
from plugins.canned_bert.tests.directories import RECORDED, hugging_face_directory
from plugins.canned_bert.tests.parity_cases import CASES, batch, config_of
from plugins.canned_bert.tests.torch_files import write_torch_file

TENSORFLOW = RECORDED / "tensorflow"
CASE = CASES["bert_pairs"]


def one_step(place, **options):
    options = {"num_labels": 3, "learning_rate": 1e-9, **options}
    classifier = BertClassifier(
        options.pop("bert_config", BertConfig.from_dict(config_of(CASE))),
        config=ec.RunConfig(model_dir=str(place), tf_random_seed=3, save_summary_steps=0, allow_untrained=True),
        **options,
    )
    inputs = batch(CASE, 0)
    features = {"input_ids": inputs["ids"], "input_mask": inputs["mask"], "segment_ids": inputs["segments"]}
    list(classifier.predict(lambda: [features]))  # without a step, the variables have their initial values
    return classifier


@pytest.fixture
def directory(tmp_path):
    return hugging_face_directory("bert_pairs", tmp_path / "hugging_face")


@pytest.mark.parametrize("path", [TENSORFLOW, TENSORFLOW / "bert_model.ckpt", TENSORFLOW / "bert_model.ckpt.index"])
def test_tensorflow_and_safetensors_are_the_same_bit_for_bit(directory, path):
    theirs, ours = read_checkpoint(path), read_checkpoint(directory)
    assert theirs.keys() == ours.keys()  # no slots, no step
    for name, value in ours.items():
        assert theirs[name].dtype == value.dtype == np.float32
        np.testing.assert_array_equal(theirs[name], value, err_msg=name)


def test_both_give_the_same_model(directory, tmp_path):
    one = one_step(tmp_path / "one", init_checkpoint=directory).variables
    other = one_step(tmp_path / "other", init_checkpoint=TENSORFLOW).variables
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
        np.testing.assert_array_equal(one[name], read_checkpoint(directory)[name], err_msg=name)


@pytest.mark.parametrize("name", ["bert_pairs", "albert_groups"])
def test_written_and_read_again(name, tmp_path):
    directory = hugging_face_directory(name, tmp_path / "in")
    config = BertConfig.from_pretrained(directory)
    labels = [f"class {index}" for index in range(CASES[name]["labels"])]
    again = save_pretrained(tmp_path / "out", read_checkpoint(directory), config, labels=labels)
    first, second = (load_file(f"{place}/model.safetensors") for place in (directory, again))
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[key], second[key]) for key in first)
    assert BertConfig.from_pretrained(again) == config
    values = json.loads((tmp_path / "out" / "config.json").read_text())
    assert values["id2label"]["1"] == "class 1"


def test_files_in_parts_bare_encoders_and_old_names(directory, tmp_path):
    whole = load_file(directory / "model.safetensors")
    parts, weight_map = tmp_path / "parts", {}
    parts.mkdir()
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    renamed = {}
    for key, value in whole.items():
        for new_name, old_name in old.items():
            key = key.replace(new_name, old_name)
        if not key.startswith("classifier"):
            renamed[key.removeprefix("bert.")] = value
    for index, key in enumerate(renamed):
        weight_map[key] = f"model-{index % 2}.safetensors"
    for file in set(weight_map.values()):
        save_file({key: renamed[key] for key in renamed if weight_map[key] == file}, parts / file)
    (parts / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    shutil.copy(directory / "config.json", parts)
    found, expected = read_checkpoint(parts), read_checkpoint(directory)
    assert found.keys() == expected.keys() - {"output_weights", "output_bias"}
    assert all(np.array_equal(found[name], expected[name]) for name in found)
    (parts / "model-1.safetensors").unlink()
    with pytest.raises(ArgumentError, match=r"names files that do not exist: model-1\.safetensors"):
        read_checkpoint(parts)


@pytest.mark.slow
def test_what_is_not_loaded_is_said(directory, tmp_path, caplog):
    path = directory / "model.safetensors"
    tensors = load_file(path)
    del tensors["bert.pooler.dense.bias"]
    save_file({**tensors, "cls.predictions.bias": np.zeros(4, np.float32)}, path)
    caplog.set_level(logging.INFO)
    classifier = one_step(tmp_path / "model", init_checkpoint=directory, num_labels=5)
    assert "bert/pooler/dense/bias keeps its initialiser: not in the checkpoint" in caplog.text
    assert "output_bias keeps its initialiser: it has shape [3] in the checkpoint and [5] in the model" in caplog.text
    assert "cls.predictions.bias" in caplog.text
    assert classifier.variables["output_bias"].shape == (5,)
    np.testing.assert_array_equal(
        classifier.variables["bert/pooler/dense/kernel"], tensors["bert.pooler.dense.weight"].T
    )


def test_weights_of_another_model_are_refused(directory, tmp_path):
    config = BertConfig.from_dict(config_of(CASE))
    with pytest.raises(ArgumentError, match=r"have 40 tokens of 16 numbers, but the configuration has 41 of 16"):
        one_step(tmp_path / "a", init_checkpoint=directory, bert_config=config.replace(vocab_size=41))
    with pytest.raises(ArgumentError, match=r"lack 'bert/encoder/layer_2/.*fewer layers"):
        one_step(tmp_path / "b", init_checkpoint=TENSORFLOW, bert_config=config.replace(num_hidden_layers=3))
    with pytest.raises(ArgumentError, match=r"intermediate/dense/kernel' of shape \[16, 32\]"):
        one_step(tmp_path / "c", init_checkpoint=directory, bert_config=config.replace(intermediate_size=64))
    assert not list((tmp_path / "a").glob("checkpoints/*")), "something was written"


@pytest.mark.parametrize("keep", [0, 7, 1000, -1])
def test_half_a_download_is_refused(directory, keep):
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CheckpointCorruptError, match=r"model\.safetensors .*Download it again"):
        read_checkpoint(directory)


@pytest.mark.parametrize("keep", [0, 100, -1])
def test_half_a_tensorflow_checkpoint_is_refused(tmp_path, keep):
    shutil.copytree(TENSORFLOW, tmp_path / "torn")
    data = tmp_path / "torn" / "bert_model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:keep])
    with pytest.raises(CheckpointCorruptError, match="it is incomplete"):
        read_checkpoint(tmp_path / "torn")
    data.unlink()
    with pytest.raises(ArgumentError, match=r"lacks its file .*data-00000-of-00001"):
        read_checkpoint(tmp_path / "torn")


def test_a_damaged_index_is_refused():
    whole = (TENSORFLOW / "bert_model.ckpt.index").read_bytes()
    assert len(read_table(whole, "index")) == 44
    refused = 0
    for place in range(0, len(whole), 7):
        torn = bytearray(whole)
        torn[place] ^= 0x10
        try:
            assert read_table(bytes(torn), "index") == read_table(whole, "index")  # a byte that is not read
        except CheckpointCorruptError:
            refused += 1
    assert refused > 0.9 * len(range(0, len(whole), 7))
    with pytest.raises(CheckpointCorruptError, match="not an index of a TensorFlow checkpoint"):
        read_table(whole[:-1], "index")


def test_pickled_weights_are_read_as_the_others(directory, tmp_path):
    expected = read_checkpoint(directory)
    write_torch_file(directory / "pytorch_model.bin", load_file(directory / "model.safetensors"))
    (directory / "model.safetensors").unlink()
    found = read_checkpoint(directory)
    assert found.keys() == expected.keys()
    np.testing.assert_array_equal(found["bert/embeddings/word_embeddings"], expected["bert/embeddings/word_embeddings"])
    with pytest.raises(ArgumentError, match="There are no pretrained weights at"):
        read_checkpoint(tmp_path / "nowhere")


def test_warm_start_and_assignment_maps_read_them_too(directory, tmp_path):
    settings = ec.WarmStartSettings(directory, "bert/embeddings/", reader=read_checkpoint)
    variables = one_step(tmp_path / "model", warm_start_from=settings).variables
    expected = read_checkpoint(directory)
    name = "bert/embeddings/word_embeddings"
    np.testing.assert_array_equal(variables[name], expected[name])
    assert not np.array_equal(variables["output_weights"], expected["output_weights"])


def test_rows_of_another_vocabulary_are_carried_over(directory, tmp_path):
    old, new = [f"token{index}" for index in range(40)], ["token7", "token3", "new"]
    name = "bert/embeddings/word_embeddings"
    settings = ec.WarmStartSettings(directory, "bert/", {name: ec.VocabInfo(new, 3, 0, old)}, reader=read_checkpoint)
    config = BertConfig.from_dict(config_of(CASE)).replace(vocab_size=3)
    inputs = {"input_ids": np.array([[0, 1, 2]], np.int32)}
    classifier = BertClassifier(
        config,
        num_labels=3,
        warm_start_from=settings,
        config=ec.RunConfig(model_dir=str(tmp_path), tf_random_seed=1),
    )
    list(classifier.predict(lambda: [inputs]))
    rows = read_checkpoint(directory)[name]
    np.testing.assert_array_equal(classifier.variables[name], np.stack([rows[7], rows[3], 0 * rows[0]]))
