"""Tests of the checks before a restore, and of the messages about differences."""

import json

import jax
import numpy as np
import pytest

from estimator_core._checkpoint import CheckpointItems, CheckpointStore
from estimator_core._checkpoint.manifest import FORMAT, checksum, read_manifest
from estimator_core._checkpoint.read import list_variables, load_variables
from estimator_core._checkpoint.restore import restore
from estimator_core.errors import (
    ArgumentError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
)


@pytest.fixture
def model_dir(tmp_path):
    with CheckpointStore(tmp_path) as store:
        store.save(
            7,
            CheckpointItems(
                clock=np.array([7, 0, 0, 0], np.uint32),
                variables={
                    "dense/kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
                    "dense/bias": np.ones(3, np.float32),
                },
                model_state={"count": np.array(4)},
                opt_state={"mu": np.full(3, 0.25, np.float32)},
                input={"examples": 5},
            ),
        )
    return tmp_path


def like(*shape, dtype=np.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def test_a_match_is_restored_with_input_and_without_other_items(model_dir):
    items = restore(model_dir, {"variables": {"dense/kernel": like(2, 3), "dense/bias": like(3)}})
    np.testing.assert_array_equal(items.variables["dense/kernel"], [[0, 1, 2], [3, 4, 5]])
    assert items.input == {"examples": 5}
    assert items.opt_state == {}


def test_every_difference_is_told_before_anything_is_read(model_dir, monkeypatch):
    monkeypatch.setattr("estimator_core._checkpoint.orbax_io.read_arrays", pytest.fail)
    wanted = {
        "variables": {"dense/kernel": like(2, 4), "dense/scale": like(3)},
        "opt_state": {"mu": like(3, dtype=np.float16)},
    }
    with pytest.raises(CheckpointMismatchError) as caught:
        restore(model_dir, wanted)
    text = str(caught.value)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0].endswith("checkpoints/7 does not fit this model:")
    assert lines[1:7] == [
        "variables",
        "only in the model: dense/scale float32[3]",
        "only in the checkpoint: dense/bias float32[3]",
        "shape differs: dense/kernel model float32[2,4], checkpoint float32[2,3]",
        "opt_state",
        "dtype differs: mu model float16[3], checkpoint float32[3]",
    ]
    assert "written with estimator-core" in text


def test_long_differences_are_cut(model_dir):
    wanted = {"variables": {f"new/{index}": like(1) for index in range(50)}}
    with pytest.raises(CheckpointMismatchError, match=r"\.\.\. and 30 more"):
        restore(model_dir, wanted)


def test_missing_and_extra_variables_can_be_allowed(model_dir):
    wanted = {"variables": {"dense/bias": like(3), "new": like(2)}}
    items = restore(model_dir, wanted, allow_missing=True, allow_extra=True)
    assert set(items.variables) == {"dense/bias"}
    with pytest.raises(CheckpointMismatchError, match="only in the checkpoint"):
        restore(model_dir, wanted, allow_missing=True)
    with pytest.raises(CheckpointMismatchError, match="only in the model"):
        restore(model_dir, wanted, allow_extra=True)
    with pytest.raises(CheckpointMismatchError, match="shape differs"):
        restore(model_dir, {"variables": {"dense/bias": like(4)}}, allow_missing=True, allow_extra=True)


def test_a_dtype_is_cast_only_when_asked_for(model_dir):
    wanted = {"opt_state": {"mu": like(3, dtype=jax.numpy.bfloat16)}}
    with pytest.raises(CheckpointMismatchError, match="model bfloat16"):
        restore(model_dir, wanted)
    cast = restore(model_dir, wanted, allow_cast=True).opt_state["mu"]
    assert cast.dtype == jax.numpy.bfloat16
    np.testing.assert_array_equal(cast.astype(np.float32), [0.25] * 3)


def test_variables_without_model_code(model_dir):
    variables = load_variables(model_dir)
    assert {name: value.shape for name, value in variables.items()} == {
        "dense/kernel": (2, 3),
        "dense/bias": (3,),
        "count": (),
    }
    only = load_variables(model_dir / "checkpoints" / "7", ["count"])
    assert {name: int(value) for name, value in only.items()} == {"count": 4}
    with pytest.raises(ArgumentError, match=r"no variables \['dense/scale'\]; it has \['count', 'dense/bias'"):
        load_variables(model_dir, ["dense/scale"])


def test_a_directory_of_exports_is_told_as_such(model_dir, tmp_path):
    exports = tmp_path / "exports"
    for name in ("9", "10", "temp-11"):
        (exports / name).mkdir(parents=True)
        (exports / name / "manifest.json").write_text('{"format": "stablehlo"}')
    with pytest.raises(
        CheckpointNotFoundError, match=r"a directory of 2 exports\. Name one .* newest, .*10, or the model"
    ):
        load_variables(exports)
    checkpoints = (model_dir / "checkpoints").rename(tmp_path / "kept")
    with pytest.raises(CheckpointNotFoundError, match="Name a checkpoint"):
        load_variables(checkpoints)


def test_variables_are_listed_without_reading_arrays(model_dir, monkeypatch):
    monkeypatch.setattr("estimator_core._checkpoint.orbax_io.read_arrays", pytest.fail)
    listed = list_variables(model_dir)
    assert (listed["dense/kernel"].shape, listed["dense/kernel"].dtype) == ((2, 3), "float32")
    assert "mu" not in listed


def test_the_manifest_says_who_wrote_what(model_dir):
    manifest = read_manifest(model_dir / "checkpoints" / "7")
    assert manifest.format == 1  # no array is split into pieces, so an older version reads it too
    assert manifest.packages["jax"] == jax.__version__
    entry = manifest.arrays["variables"]["dense/bias"]
    assert entry.crc32 == checksum(np.ones(3, np.float32).tobytes())
    assert entry.bytes == 12


def test_a_newer_format_is_refused_by_name(model_dir):
    path = model_dir / "checkpoints" / "7" / "manifest.json"
    body = json.loads(path.read_text())
    path.write_text(json.dumps({**body, "format": FORMAT + 1, "packages": {"estimator-core": "9.0"}}))
    with pytest.raises(CheckpointError, match=r"has format 4; .* up to 3.*'9\.0'.*Install the newer") as caught:
        restore(model_dir / "checkpoints" / "7", {})
    assert not isinstance(caught.value, CheckpointCorruptError)  # so that no older one is used instead
