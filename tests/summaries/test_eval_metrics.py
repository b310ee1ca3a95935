"""Tests of `metrics.jsonl`: one line per evaluation, and what is read if a line is torn."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_core._summaries.eval_metrics import append_eval_metrics, read_eval_metrics


def test_recorded_case_43(tmp_path: Path):
    for step, loss, accuracy in [(1000, 1.0, 2.0), (2000, 3.0, 4.0), (3000, 5.0, 6.0)]:
        append_eval_metrics(tmp_path / "eval", step, {"loss": loss, "accuracy": accuracy}, f"ckpt-{step}")
    assert read_eval_metrics(tmp_path / "eval") == {
        1000: {"loss": 1.0, "accuracy": 2.0},
        2000: {"loss": 3.0, "accuracy": 4.0},
        3000: {"loss": 5.0, "accuracy": 6.0},
    }
    assert read_eval_metrics(tmp_path / "eval_other") == {}


def test_what_a_line_holds(tmp_path: Path):
    append_eval_metrics(
        tmp_path, np.int64(7), {"loss": np.float32(0.5), "n": np.uint32(3), "a": np.eye(2), "t": b"x"}, None
    )
    record = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert record.pop("wall_time") > 1e9
    assert record == {
        "global_step": 7,
        "metrics": {"loss": 0.5, "n": 3, "a": [[1.0, 0.0], [0.0, 1.0]], "t": "x"},
        "checkpoint_path": None,
    }


def test_the_later_line_of_a_step_wins_and_steps_are_sorted(tmp_path: Path):
    for step, loss in [(200, 1.0), (100, 2.0), (200, 3.0)]:
        append_eval_metrics(tmp_path, step, {"loss": loss}, None)
    assert list(read_eval_metrics(tmp_path).items()) == [(100, {"loss": 2.0}), (200, {"loss": 3.0})]


def test_values_that_are_not_finite_come_back(tmp_path: Path):
    append_eval_metrics(tmp_path, 1, {"loss": float("inf"), "nan": np.float32("nan")}, None)
    metrics = read_eval_metrics(tmp_path)[1]
    assert metrics["loss"] == float("inf")
    assert np.isnan(metrics["nan"])


@given(cut=st.integers(min_value=1, max_value=200))
def test_a_torn_line_loses_that_evaluation_only(tmp_path_factory: pytest.TempPathFactory, cut: int):
    directory = tmp_path_factory.mktemp("eval")
    path = directory / "metrics.jsonl"
    append_eval_metrics(directory, 1, {"loss": 1.0}, None)
    first = len(path.read_bytes())
    append_eval_metrics(directory, 2, {"loss": 2.0}, None)
    both = path.read_bytes()
    cut = min(cut, len(both) - first)
    path.write_bytes(both[:-cut])
    steps = [1, 2] if cut == 1 else [1]  # one byte less removes only the newline
    assert list(read_eval_metrics(directory)) == steps
    append_eval_metrics(directory, 3, {"loss": 3.0}, None)
    assert list(read_eval_metrics(directory)) == [*steps, 3]


def test_a_torn_line_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    append_eval_metrics(tmp_path, 1, {"loss": 1.0}, None)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"global_step": 2, "met')
    with caplog.at_level(logging.WARNING):
        assert list(read_eval_metrics(tmp_path)) == [1]
    assert "line 2 is torn" in caplog.text


def test_a_line_of_an_older_release_drops_the_results_after_its_step(tmp_path: Path):
    """Releases without a journal wrote such a line when a run resumed from a checkpoint."""
    for step in (5, 10, 15):
        append_eval_metrics(tmp_path, step, {"loss": 1.0}, None)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"resumed_from": 10}\n')
    append_eval_metrics(tmp_path, 12, {"loss": 2.0}, None)
    assert list(read_eval_metrics(tmp_path)) == [5, 10, 12]
