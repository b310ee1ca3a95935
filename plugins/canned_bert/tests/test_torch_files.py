"""Files of torch.save are read without torch, and the functions that they name are not called."""

import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import estimator_core as ec
from estimator_canned_bert.weights.torch_file import read_torch_file
from estimator_core.errors import ArgumentError, CheckpointCorruptError
from plugins.canned_bert.tests.directories import hugging_face_directory
from plugins.canned_bert.tests.torch_files import all_kinds, write_torch_file


def test_every_kind_of_array(tmp_path: Path) -> None:
    found = read_torch_file(write_torch_file(tmp_path / "pytorch_model.bin", all_kinds()))
    assert list(found) == list(all_kinds())
    for name, array in all_kinds().items():
        assert found[name].dtype == array.dtype, name
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_a_directory_gives_what_safetensors_gives(tmp_path: Path) -> None:
    directory = hugging_face_directory("bert_pairs", tmp_path / "in")
    expected = ec.load_variables(directory)
    write_torch_file(directory / "pytorch_model.bin", load_file(directory / "model.safetensors"))
    (directory / "model.safetensors").unlink()
    found = ec.load_variables(directory)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


class Runs:
    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self):
        return os.mkdir, (str(self.place),)


def test_what_is_no_tensor_is_refused_before_it_is_imported(tmp_path: Path) -> None:
    path = write_torch_file(tmp_path / "pytorch_model.bin", all_kinds(), run=Runs(tmp_path / "made"))
    with pytest.raises(
        ArgumentError, match=r"names (posix|nt)\.mkdir, which is not a tensor: loading it could run code"
    ):
        read_torch_file(path)
    assert not (tmp_path / "made").exists()
    with pytest.raises(ArgumentError, match="does not hold a dict of tensors"):
        read_torch_file(write_torch_file(tmp_path / "pytorch_model.bin", {}, epoch=3))


@pytest.mark.parametrize("jump", [1000, -1])
def test_a_tensor_outside_its_storage_is_refused(jump: int, tmp_path: Path) -> None:
    numbers = {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}
    with pytest.raises(CheckpointCorruptError, match="is not within its storage"):
        read_torch_file(write_torch_file(tmp_path / "pytorch_model.bin", numbers, jump))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = write_torch_file(tmp_path / "pytorch_model.bin", all_kinds())
    whole = path.read_bytes()
    for end in range(0, len(whole), 97):
        path.write_bytes(whole[:end])
        with pytest.raises((CheckpointCorruptError, ArgumentError), match=r"pytorch_model\.bin"):
            read_torch_file(path)
