"""Tests of the checkpoint that two processes wrote in format 2. It is never rewritten.

It was written on Python 3.11 with jax 0.10.2 and orbax-checkpoint 0.12.8.
"""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from estimator_core.checkpoint import list_variables, load_variables, read_checkpoint, read_manifest
from estimator_core.errors import ArgumentError, CheckpointCorruptError
from estimator_core.plugins import Plugins, using_plugins

FROZEN = Path(__file__).parent / "frozen_format_2"


def test_it_reads_as_written() -> None:
    items = read_checkpoint(FROZEN)
    assert np.asarray(items.clock).tolist() == [12, 0, 7, 0]
    kernel, bias = items.variables["dense/kernel"], items.variables["dense/bias"]
    assert kernel.dtype == np.float32
    np.testing.assert_array_equal(kernel, np.arange(6).reshape(2, 3) / 4)
    assert bias.dtype.name == "bfloat16"
    assert bias.astype(float).tolist() == [1, -2]
    assert items.variables["none"].shape == (0, 3)
    assert int(items.model_state["count"]) == 5
    assert (jax.random.key_data(items.model_state["dropout/key"]) == jax.random.key_data(jax.random.key(3))).all()
    assert items.opt_state["0/mu/dense/kernel"].tolist() == [[0.5] * 3] * 2
    assert items.opt_state["0/mu/dense/kernel"].dtype == np.float16
    assert items.input == {"fingerprint": "abc", "examples": 384}
    assert items.hooks["Best"]["loss"] == 0.25
    assert np.asarray(items.hooks["Best"]["history"]).tolist() == [3, 1, 2]
    assert items.timers == {"save": {"step": 10}}
    assert items.manifest == {"plugins": {"heads": "0.1.0"}}
    assert read_manifest(FROZEN).step == 12
    assert set(list_variables(FROZEN)) == {"dense/kernel", "dense/bias", "none", "dropout/key", "count"}


def test_one_variable_is_read_without_the_others() -> None:
    found = load_variables(FROZEN, "dense/kernel")
    assert list(found) == ["dense/kernel"]
    assert found["dense/kernel"].tolist() == [[0, 0.25, 0.5], [0.75, 1, 1.25]]


def altered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[list[Any]], object]) -> Path:
    """Returns a copy of the checkpoint with other pieces of the kernel in its manifest, whose seal is not compared."""
    copy = tmp_path / "12"
    shutil.copytree(FROZEN, copy)
    body = json.loads((copy / "manifest.json").read_bytes())
    change(body["arrays"]["variables"]["dense/kernel"]["pieces"])
    (copy / "manifest.json").write_text(json.dumps(body))
    monkeypatch.setattr("estimator_core._checkpoint.manifest._seal", lambda told: body["seal"])
    return copy


def test_a_piece_that_was_not_saved_so_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = altered(tmp_path, monkeypatch, lambda pieces: pieces[1].__setitem__(3, "00000000"))
    with pytest.raises(CheckpointCorruptError, match=r"variables 'dense/kernel': the piece .* process 1 saved"):
        read_checkpoint(copy)


def test_pieces_that_leave_a_gap_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = altered(tmp_path, monkeypatch, lambda pieces: pieces.pop())
    with pytest.raises(CheckpointCorruptError, match=r"pieces of variables 'dense/kernel' do not cover the array"):
        read_checkpoint(copy)


def test_a_core_without_the_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "estimator_cluster.older_checkpoints", None)
    with pytest.raises(ArgumentError, match="older version have written, comes with estimator-cluster: pip install"):
        read_checkpoint(FROZEN)
    assert read_manifest(FROZEN).step == 12


def test_a_block_list_applies() -> None:
    with (
        using_plugins(Plugins(block=["estimator-cluster"])),
        pytest.raises(ArgumentError, match="needs estimator-cluster, which is blocked by name"),
    ):
        read_checkpoint(FROZEN)
